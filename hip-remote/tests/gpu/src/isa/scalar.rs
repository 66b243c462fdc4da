//! Instructions on the registers that all lanes share, and branches.

use super::Step;
use super::operand::Type::{B32, B64};
use super::operand::{LITERAL, PRIVATE_APERTURE, SHARED_APERTURE, Source, scalar_text};
use super::scalar_table::{Row, Run, SH_MEM_BASES, SOP1, SOP2, SOPC, SOPK, SOPP, extract};
use crate::wave::Wave;

#[derive(Clone)]
pub struct Scalar {
    row: &'static Row,
    to: usize,
    sources: [Source; 2],
    constant: i16,
}

impl std::fmt::Debug for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

fn find(rows: &'static [Row], code: u32) -> Option<&'static Row> {
    rows.iter().find(|row| row.code == code)
}

impl Scalar {
    /// The instruction, and whether a literal follows it.
    pub fn decode(first: u32, second: u32) -> Option<(Self, bool)> {
        let [a, b] = [first & 0xff, first >> 8 & 0xff].map(|code| Source::of(code, second));
        let to = (first >> 16 & 0x7f) as usize;
        let constant = first as i16;
        let nothing = Source::default();
        let (row, to, sources) = match first >> 23 {
            0b1_0111_1101 => (find(SOP1, first >> 8 & 0xff)?, to, [a, nothing]),
            0b1_0111_1110 => (find(SOPC, first >> 16 & 0x7f)?, 0, [a, b]),
            0b1_0111_1111 => (find(SOPP, first >> 16 & 0x7f)?, 0, [nothing; 2]),
            0b1_0110_0000..=0b1_0111_1111 => (find(SOPK, first >> 23 & 0x1f)?, to, [nothing; 2]),
            _ => (find(SOP2, first >> 23 & 0x7f)?, to, [a, b]),
        };
        if matches!(row.run, Run::GetRegister) && constant & 0x3f != SH_MEM_BASES {
            return None;
        }
        let used = match row.run {
            Run::Two(_) | Run::Compare(_) => 2,
            Run::One(_) | Run::SaveExec(_) | Run::WriteExec(_) | Run::Bit(_) | Run::SetPc | Run::SwapPc => 1,
            _ => 0,
        };
        if sources[..used].iter().any(|source| !source.is_known()) {
            return None;
        }
        let long = sources[..used].iter().any(|source| source.code == LITERAL);
        Some((Self { row, to, sources, constant }, long))
    }

    pub fn execute(&self, wave: &mut Wave) -> Step {
        let types = self.row.types;
        let mut scc = wave.scc;
        match self.row.run {
            Run::Two(run) => {
                let [a, b] = [0, 1].map(|i| self.sources[i].scalar(wave, types[i + 1]));
                let value = run(a, b, &mut scc);
                wave.set_scalar(self.to, types[0].words(), value);
            }
            Run::One(run) => {
                let value = run(self.sources[0].scalar(wave, types[1]), &mut scc);
                wave.set_scalar(self.to, types[0].words(), value);
            }
            Run::Compare(run) => {
                let [a, b] = [0, 1].map(|i| self.sources[i].scalar(wave, types[i]));
                scc = run(a, b);
            }
            Run::Constant(run) => {
                let old = wave.scalar(self.to, 1) as u32;
                if let Some(value) = run(old, i32::from(self.constant), &mut scc) {
                    wave.set_scalar(self.to, 1, u64::from(value));
                }
            }
            Run::SaveExec(run) => {
                let (old, source) = (wave.exec(), self.sources[0].scalar(wave, B64));
                let new = run(old, source);
                wave.set_scalar(self.to, 2, old);
                wave.set_exec(new);
                scc = new != 0;
            }
            Run::WriteExec(run) => {
                let new = run(wave.exec(), self.sources[0].scalar(wave, B64));
                wave.set_scalar(self.to, 2, new);
                wave.set_exec(new);
                scc = new != 0;
            }
            Run::Bit(set) => {
                let bit = 1 << (self.sources[0].scalar(wave, B32) & 31);
                let old = wave.scalar(self.to, 1);
                wave.set_scalar(self.to, 1, if set { old | bit } else { old & !bit });
            }
            Run::GetRegister => {
                let (from, width) = self.register_field();
                let bases = u64::from(SHARED_APERTURE) | u64::from(PRIVATE_APERTURE >> 16);
                wave.set_scalar(self.to, 1, extract(bases, from, width));
            }
            Run::GetPc => wave.set_scalar(self.to, 2, wave.pc),
            Run::SetPc => wave.pc = self.sources[0].scalar(wave, B64),
            Run::SwapPc => {
                let (next, target) = (wave.pc, self.sources[0].scalar(wave, B64));
                wave.set_scalar(self.to, 2, next);
                wave.pc = target;
            }
            Run::Call => {
                wave.set_scalar(self.to, 2, wave.pc);
                self.branch(wave);
            }
            Run::Branch(taken) if taken(wave) => self.branch(wave),
            Run::Branch(_) | Run::Nothing => {}
            Run::Barrier => return Step::Barrier,
            Run::End => return Step::End,
        }
        wave.scc = scc;
        Step::Next
    }

    /// The first bit that s_getreg_b32 reads, and how many.
    fn register_field(&self) -> (u64, u64) {
        let constant = u64::from(self.constant as u16);
        (constant >> 6 & 31, (constant >> 11) + 1)
    }

    fn branch(&self, wave: &mut Wave) {
        wave.pc = wave.pc.wrapping_add_signed(i64::from(self.constant) * 4);
    }

    pub fn text(&self) -> String {
        let types = self.row.types;
        let source = |i: usize, kind: usize| self.sources[i].text(types[kind]);
        let operands = match self.row.run {
            Run::Two(_) => vec![scalar_text(self.to as u32, types[0].words()), source(0, 1), source(1, 2)],
            Run::One(_) | Run::SaveExec(_) | Run::WriteExec(_) | Run::Bit(_) | Run::SwapPc => {
                vec![scalar_text(self.to as u32, types[0].words()), source(0, 1)]
            }
            Run::Compare(_) => vec![source(0, 0), source(1, 1)],
            Run::Constant(_) | Run::Call => {
                vec![scalar_text(self.to as u32, types[0].words()), format!("{:#x}", self.constant)]
            }
            Run::GetRegister => {
                let field = match self.register_field() {
                    (0, 32) => String::new(),
                    (from, width) => format!(", {from}, {width}"),
                };
                vec![scalar_text(self.to as u32, 1), format!("hwreg(HW_REG_SH_MEM_BASES{field})")]
            }
            Run::GetPc => vec![scalar_text(self.to as u32, 2)],
            Run::SetPc => vec![source(0, 0)],
            Run::Branch(_) => vec![self.constant.to_string()],
            Run::Nothing => vec![format!("{:#x}", self.constant)],
            Run::End if self.constant != 0 => vec![self.constant.to_string()],
            Run::Barrier | Run::End => vec![],
        };
        format!("{} {}", self.row.name, operands.join(", ")).trim_end().to_string()
    }
}
