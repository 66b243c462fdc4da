//! The registers of sixty-four lanes that run together.

pub const LANES: usize = 64;
pub const VCC: usize = 106;
const EXEC: usize = 126;

pub struct Wave {
    s: [u32; 128],
    /// Each register has a word for each lane. Accumulation registers begin at [`Self::accumulators`].
    v: Vec<[u32; LANES]>,
    /// Where the accumulation registers begin in `v` (the kernel descriptor says it).
    pub accumulators: usize,
    pub scc: bool,
    /// The address of the next instruction.
    pub pc: u64,
    /// This wave's scratch memory, and the bytes of it that each lane has.
    pub scratch: Vec<u8>,
    pub ended: bool,
}

impl Wave {
    pub fn new(vectors: usize, accumulators: usize, scratch: usize) -> Self {
        Self {
            s: [0; 128],
            v: vec![[0; LANES]; vectors],
            accumulators,
            scc: false,
            pc: 0,
            scratch: vec![0; scratch * LANES],
            ended: false,
        }
    }

    /// The state in which a wave starts, with the addresses that its scratch memory has.
    pub fn start(&mut self, pc: u64, lanes: usize) {
        self.s = [0; 128];
        self.v.iter_mut().for_each(|register| *register = [0; LANES]);
        self.scc = false;
        self.ended = false;
        self.pc = pc;
        self.set_exec(if lanes >= LANES { u64::MAX } else { (1 << lanes) - 1 });
    }

    pub fn scalar(&self, register: usize, words: usize) -> u64 {
        let low = u64::from(self.s[register & 127]);
        if words == 2 { low | u64::from(self.s[(register + 1) & 127]) << 32 } else { low }
    }

    pub fn set_scalar(&mut self, register: usize, words: usize, value: u64) {
        self.s[register & 127] = value as u32;
        if words == 2 {
            self.s[(register + 1) & 127] = (value >> 32) as u32;
        }
    }

    pub fn exec(&self) -> u64 {
        self.scalar(EXEC, 2)
    }

    pub fn set_exec(&mut self, lanes: u64) {
        self.set_scalar(EXEC, 2, lanes);
    }

    pub fn vcc(&self) -> u64 {
        self.scalar(VCC, 2)
    }

    /// Sources number accumulation registers from 256 on.
    fn row(&self, register: usize) -> usize {
        if register >= 256 { register - 256 + self.accumulators } else { register }
    }

    /// How many registers from this one on the kernel has.
    pub fn has_vector(&self, register: usize, words: usize) -> bool {
        self.row(register) + words <= self.v.len()
    }

    pub fn vector(&self, register: usize, lane: usize) -> u32 {
        self.v[self.row(register)][lane]
    }

    pub fn vector_words(&self, register: usize, words: usize, lane: usize) -> u64 {
        let low = u64::from(self.vector(register, lane));
        if words == 2 { low | u64::from(self.vector(register + 1, lane)) << 32 } else { low }
    }

    /// A register, or a pair of them, of each lane.
    pub fn all_lanes(&self, register: usize, words: usize) -> [u64; LANES] {
        let low = &self.v[self.row(register)];
        if words == 1 {
            return low.map(u64::from);
        }
        let high = &self.v[self.row(register + 1)];
        std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32)
    }

    pub fn set_vector(&mut self, register: usize, lane: usize, value: u32) {
        let row = self.row(register);
        self.v[row][lane] = value;
    }

    pub fn set_vector_words(&mut self, register: usize, words: usize, lane: usize, value: u64) {
        self.set_vector(register, lane, value as u32);
        if words == 2 {
            self.set_vector(register + 1, lane, (value >> 32) as u32);
        }
    }
}

/// The lanes of a mask, from the lowest on.
pub fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        if mask == 0 {
            return None;
        }
        mask &= mask - 1;
        Some(lane)
    })
}
