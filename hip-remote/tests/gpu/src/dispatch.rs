//! A launch: its groups one after the other, the waves of each in turns between barriers.

use std::sync::Arc;

use crate::code_object::Kernel;
use crate::fault::Fault;
use crate::isa::{Around, Step};
use crate::memory::{Map, View};
use crate::wave::{LANES, Wave};

pub struct Launch {
    pub kernel: Arc<Kernel>,
    /// In groups.
    pub grid: [u32; 3],
    /// In lanes.
    pub block: [u32; 3],
    /// Local memory beside the kernel's own, in bytes.
    pub shared: usize,
    /// The explicit arguments, laid out as the metadata says.
    pub arguments: Vec<u8>,
}

/// Memory that begins at a multiple of 64, as packets and arguments do.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

struct Lines(Vec<Line>);

impl Lines {
    fn new(bytes: usize) -> Self {
        Self(vec![Line([0; 64]); bytes.div_ceil(64).max(1)])
    }

    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    fn range(&self) -> (u64, u64) {
        (self.address(), self.address() + self.0.len() as u64 * 64)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            if let Some(line) = self.0.get_mut((at + i) / 64) {
                line.0[(at + i) % 64] = *byte;
            }
        }
    }
}

impl Launch {
    /// # Errors
    /// A lane went wrong, or the kernel asks for something that the interpreter does not know.
    pub fn run(&self, map: &Map) -> Result<(), Fault> {
        let descriptor = &self.kernel.descriptor;
        let arguments = self.arguments();
        let packet = self.packet(&arguments);
        let threads = self.block.iter().product::<u32>() as usize;
        let mut waves: Vec<Wave> = (0..threads.div_ceil(LANES))
            .map(|_| Wave::new(descriptor.vectors, descriptor.accumulators, descriptor.scratch))
            .collect();
        let mut local = vec![0; descriptor.local + self.shared];
        let mut around =
            Around { view: View::new(map, [arguments.range(), packet.range()]), local: &mut local };
        for z in 0..self.grid[2] {
            for y in 0..self.grid[1] {
                for x in 0..self.grid[0] {
                    for (i, wave) in waves.iter_mut().enumerate() {
                        self.start(
                            wave,
                            i * LANES,
                            threads,
                            [x, y, z],
                            arguments.address(),
                            packet.address(),
                        )?;
                    }
                    self.group(&mut waves, &mut around)?;
                }
            }
        }
        Ok(())
    }

    fn group(&self, waves: &mut [Wave], around: &mut Around<'_>) -> Result<(), Fault> {
        while waves.iter().any(|wave| !wave.ended) {
            // A wave that has ended holds no barrier up.
            for wave in waves.iter_mut().filter(|wave| !wave.ended) {
                self.until_barrier(wave, around)?;
            }
        }
        Ok(())
    }

    fn until_barrier(&self, wave: &mut Wave, around: &mut Around<'_>) -> Result<(), Fault> {
        loop {
            let at = wave.pc;
            let instruction = self.kernel.code.at(at).map_err(Fault::Unknown)?;
            wave.pc += instruction.size;
            match instruction.execute(wave, around) {
                Ok(Step::Next) => {}
                Ok(Step::Barrier) => return Ok(()),
                Ok(Step::End) => {
                    wave.ended = true;
                    return Ok(());
                }
                Err(fault) => {
                    let text = instruction.text();
                    eprintln!("test GPU: {} at {at:#x}, {text}: {fault}", self.kernel.meta.name);
                    return Err(fault);
                }
            }
        }
    }

    /// The registers with which a wave begins (LLVM, "Initial Kernel Execution State").
    fn start(
        &self,
        wave: &mut Wave,
        first: usize,
        threads: usize,
        group: [u32; 3],
        arguments: u64,
        packet: u64,
    ) -> Result<(), Fault> {
        let descriptor = &self.kernel.descriptor;
        let lanes = threads.saturating_sub(first).min(LANES);
        wave.start(self.kernel.entry, lanes);
        let mut next = 0;
        let mut put = |wave: &mut Wave, words: &[u32]| {
            for word in words {
                wave.set_scalar(next, 1, u64::from(*word));
                next += 1;
            }
        };
        let words = |value: u64| [value as u32, (value >> 32) as u32];
        let has = |bit: u32| descriptor.properties >> bit & 1 == 1;
        if has(0) {
            // A descriptor of scratch memory, of which isa/buffer.rs asks for the bit of swizzling alone.
            put(wave, &[0, 1 << 31, u32::MAX, 0]);
        }
        if has(1) {
            put(wave, &words(packet));
        }
        if has(2) {
            put(wave, &[0, 0]);
        }
        if has(3) {
            put(wave, &words(arguments));
        }
        if has(4) {
            put(wave, &[0, 0]);
        }
        if has(5) {
            put(wave, &[0, 0]);
        }
        if has(6) {
            put(wave, &[descriptor.scratch as u32]);
        }
        // What the kernel loads of its arguments ahead would take more registers.
        if next as u32 > descriptor.user_registers {
            return Err(Fault::Unknown(
                "the kernel has fewer user registers than its properties ask for".into(),
            ));
        }
        let mut next = descriptor.user_registers as usize;
        for (axis, bit) in [7, 8, 9].into_iter().enumerate() {
            if descriptor.resources >> bit & 1 == 1 {
                wave.set_scalar(next, 1, u64::from(group[axis]));
                next += 1;
            }
        }
        if descriptor.resources >> 10 & 1 == 1 {
            next += 1;
        }
        if descriptor.resources & 1 == 1 {
            // Scratch memory is the wave's own, and begins at 0.
            wave.set_scalar(next, 1, 0);
        }
        let [width, height, _] = self.block.map(|size| size as usize);
        for lane in 0..lanes {
            let id = first + lane;
            let [x, y, z] = [id % width, id / width % height, id / width / height];
            wave.set_vector(0, lane, (x | y << 10 | z << 20) as u32);
        }
        Ok(())
    }

    /// The explicit arguments, and behind them the hidden ones that this GPU knows.
    fn arguments(&self) -> Lines {
        let meta = &self.kernel.meta;
        let mut lines = Lines::new(meta.kernarg_size.max(self.arguments.len()));
        lines.put(0, &self.arguments);
        for argument in meta.arguments.iter().filter(|argument| argument.is_hidden()) {
            let axis = match argument.kind.as_bytes().last() {
                Some(b'y') => 1,
                Some(b'z') => 2,
                _ => 0,
            };
            let value: u64 = match argument.kind.trim_end_matches(['x', 'y', 'z']) {
                "hidden_block_count_" => u64::from(self.grid[axis]),
                "hidden_group_size_" => u64::from(self.block[axis]),
                "hidden_grid_dims" => {
                    3 - self
                        .grid
                        .iter()
                        .zip(self.block)
                        .rev()
                        .take_while(|(g, b)| **g * b == 1)
                        .count()
                        .min(2) as u64
                }
                "hidden_private_base" => u64::from(crate::isa::operand::PRIVATE_APERTURE),
                "hidden_shared_base" => u64::from(crate::isa::operand::SHARED_APERTURE),
                "hidden_dynamic_lds_size" => self.shared as u64,
                _ => 0,
            };
            lines.put(argument.offset, &value.to_le_bytes()[..argument.size.min(8)]);
        }
        lines
    }

    /// The packet of the queue by which a launch is said (HSA, "AQL kernel dispatch packet").
    fn packet(&self, arguments: &Lines) -> Lines {
        let mut packet = Lines::new(64);
        packet.put(2, &3u16.to_le_bytes());
        for axis in 0..3 {
            packet.put(4 + 2 * axis, &(self.block[axis] as u16).to_le_bytes());
            packet.put(12 + 4 * axis, &(self.grid[axis] * self.block[axis]).to_le_bytes());
        }
        let local = self.kernel.descriptor.local + self.shared;
        packet.put(24, &(self.kernel.descriptor.scratch as u32).to_le_bytes());
        packet.put(28, &(local as u32).to_le_bytes());
        packet.put(32, &self.kernel.object.to_le_bytes());
        packet.put(40, &arguments.address().to_le_bytes());
        packet
    }
}
