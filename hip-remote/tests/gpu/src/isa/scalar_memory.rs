//! Loads into the registers that all lanes share (SMEM).

use super::Around;
use super::operand::scalar_text;
use crate::fault::Fault;
use crate::wave::Wave;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Load(usize),
    Time,
    Nothing,
}

struct Row {
    code: u32,
    name: &'static str,
    run: Run,
}

static ROWS: &[Row] = &[
    Row { code: 0x00, name: "s_load_dword", run: Run::Load(1) },
    Row { code: 0x01, name: "s_load_dwordx2", run: Run::Load(2) },
    Row { code: 0x02, name: "s_load_dwordx4", run: Run::Load(4) },
    Row { code: 0x03, name: "s_load_dwordx8", run: Run::Load(8) },
    Row { code: 0x04, name: "s_load_dwordx16", run: Run::Load(16) },
    Row { code: 0x20, name: "s_dcache_inv", run: Run::Nothing },
    Row { code: 0x21, name: "s_dcache_wb", run: Run::Nothing },
    Row { code: 0x24, name: "s_memtime", run: Run::Time },
    Row { code: 0x25, name: "s_memrealtime", run: Run::Time },
];

#[derive(Clone)]
pub struct ScalarMemory {
    row: &'static Row,
    to: usize,
    base: usize,
    /// The register whose value is added, where one is.
    register: Option<usize>,
    offset: i32,
    glc: bool,
}

impl std::fmt::Debug for ScalarMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl ScalarMemory {
    pub fn decode(first: u32, second: u32) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.code == first >> 18 & 0xff)?;
        let (soe, immediate) = (first >> 14 & 1 == 1, first >> 17 & 1 == 1);
        // Without an immediate the register's number takes the offset's place.
        let register = match (soe, immediate) {
            (true, _) => Some((second >> 25) as usize),
            (false, false) => Some((second & 0x7f) as usize),
            (false, true) => None,
        };
        let loads = matches!(row.run, Run::Load(_));
        Some(Self {
            row,
            to: (first >> 6 & 0x7f) as usize,
            base: ((first & 0x3f) * 2) as usize,
            register: register.filter(|_| loads),
            offset: if immediate { (second << 11) as i32 >> 11 } else { 0 },
            glc: first >> 16 & 1 == 1,
        })
    }

    pub fn execute(&self, wave: &mut Wave, around: &mut Around<'_>) -> Result<(), Fault> {
        match self.row.run {
            Run::Load(words) => {
                let register = self.register.map_or(0, |register| wave.scalar(register, 1));
                let address = wave
                    .scalar(self.base, 2)
                    .wrapping_add(register)
                    .wrapping_add_signed(i64::from(self.offset))
                    & !3;
                let memory = around.view.reach(address, words * 4)?.cast::<u32>();
                for word in 0..words {
                    // `reach` has said that the words are there.
                    let value = unsafe { memory.add(word).read() };
                    wave.set_scalar(self.to + word, 1, u64::from(value));
                }
            }
            Run::Time => wave.set_scalar(self.to, 2, crate::clock::nanoseconds()),
            Run::Nothing => {}
        }
        Ok(())
    }

    pub fn text(&self) -> String {
        let Run::Load(words) = self.row.run else {
            let to = if self.row.run == Run::Time { scalar_text(self.to as u32, 2) } else { String::new() };
            return format!("{} {to}", self.row.name).trim_end().to_string();
        };
        let offset = match self.register {
            Some(register) => scalar_text(register as u32, 1),
            None => self.offset.to_string(),
        };
        let behind = match self.register {
            Some(_) if self.offset != 0 => format!(" offset:{:#x}", self.offset),
            _ => String::new(),
        };
        let [to, base] =
            [(self.to, words), (self.base, 2)].map(|(first, words)| scalar_text(first as u32, words));
        format!("{} {to}, {base}, {offset}{behind}{}", self.row.name, if self.glc { " glc" } else { "" })
    }
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}
