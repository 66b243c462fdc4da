//! Instructions on each lane's registers (VOP1, VOP2, VOPC, VOP3, and their forms SDWA and DPP).

use super::compare::{self, Comparison};
use super::dpp::Dpp;
use super::half;
use super::operand::{LITERAL, Source, Type, scalar_text, vector_text};
use super::sdwa::{Part, Sdwa};
use super::vector_table::{MADAK, MADMK, Row, Run, VOP1, VOP2, VOP3};
use crate::fault::Fault;
use crate::wave::{LANES, VCC, Wave, lanes};

#[derive(Clone, Copy)]
enum What {
    Row(&'static Row),
    Compare(Comparison),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Four bytes, and a literal.
    Short,
    /// Eight bytes, of an instruction that also has a short form.
    Long,
    /// Eight bytes, of an instruction that has no other form.
    Only,
    Sdwa,
    Dpp,
}

#[derive(Clone)]
pub struct Vector {
    what: What,
    form: Form,
    to: usize,
    /// The scalar registers that get a mask of lanes.
    mask: usize,
    sources: [Source; 3],
    absolute: u32,
    negative: u32,
    clamp: bool,
    /// 1: doubled, 2: quadrupled, 3: halved.
    scale: u32,
    /// The sources of which the upper half is taken.
    upper: u32,
    sdwa: Option<Sdwa>,
    dpp: Option<Dpp>,
}

impl std::fmt::Debug for Vector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

fn find(rows: &'static [Row], code: u32) -> Option<What> {
    rows.iter().find(|row| row.code == code).map(What::Row)
}

const SDWA: u32 = 249;
const DPP: u32 = 250;

impl Vector {
    /// An instruction of four bytes and what may follow them, and whether something follows.
    pub fn decode(first: u32, second: u32) -> Option<(Self, bool)> {
        let (what, two) = match first >> 25 {
            0b011_1111 => (find(VOP1, first >> 9 & 0xff)?, false),
            0b011_1110 => (What::Compare(Comparison::decode(first >> 17 & 0xff)?), true),
            code => (find(VOP2, code & 0x3f)?, true),
        };
        let to = (first >> 17 & 0xff) as usize;
        let other = if two { Source::vector(first >> 9 & 0xff) } else { Source::default() };
        let mut vector = Self {
            what,
            form: Form::Short,
            to: if matches!(what, What::Compare(_)) { 0 } else { to },
            mask: VCC,
            sources: [Source::of(first & 0x1ff, second), other, Source { code: VCC as u16, literal: 0 }],
            absolute: 0,
            negative: 0,
            clamp: false,
            scale: 0,
            upper: 0,
            sdwa: None,
            dpp: None,
        };
        let literal = Source { code: LITERAL, literal: second };
        let takes_literal = match first >> 25 {
            MADMK => {
                vector.sources = [vector.sources[0], literal, other];
                true
            }
            MADAK => {
                vector.sources = [vector.sources[0], other, literal];
                true
            }
            _ => false,
        };
        let long = match first & 0x1ff {
            _ if takes_literal => {
                vector.form = Form::Only;
                true
            }
            SDWA => {
                vector.form = Form::Sdwa;
                vector.decode_sdwa(second)?;
                true
            }
            DPP => {
                vector.form = Form::Dpp;
                vector.decode_dpp(second)?;
                true
            }
            code => code == u32::from(LITERAL) && vector.count() > 0,
        };
        vector.known().then_some((vector, long))
    }

    fn decode_sdwa(&mut self, word: u32) -> Option<()> {
        let is_scalar = word >> 23 & 1 == 1;
        self.sources[0] = if is_scalar { Source::of(word & 0xff, 0) } else { Source::vector(word & 0xff) };
        if word >> 31 & 1 == 1 {
            let register = self.sources[1].register()?;
            self.sources[1] = Source::of(register as u32, 0);
        }
        let part = |shift: u32| Part(word >> shift & 7);
        let compares = matches!(self.what, What::Compare(_));
        if compares {
            // Comparisons have the mask's register where others have the destination's part.
            if word >> 15 & 1 == 1 {
                self.mask = (word >> 8 & 0x7f) as usize;
            }
        } else {
            self.clamp = word >> 13 & 1 == 1;
            self.scale = word >> 14 & 3;
        }
        self.negative = word >> 20 & 1 | (word >> 28 & 1) << 1;
        self.absolute = word >> 21 & 1 | (word >> 29 & 1) << 1;
        let (to, unused) = if compares { (Part::WHOLE, 0) } else { (part(8), word >> 11 & 3) };
        let signed = [word >> 19 & 1 == 1, word >> 27 & 1 == 1];
        self.sdwa = Some(Sdwa { to, unused, from: [part(16), part(24)], signed });
        Some(())
    }

    fn decode_dpp(&mut self, word: u32) -> Option<()> {
        self.sources[0] = Source::vector(word & 0xff);
        let control = word >> 8 & 0x1ff;
        let known = matches!(
            control,
            0x000..=0x0ff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x130 | 0x134 | 0x138 | 0x13c
                | 0x140 | 0x141 | 0x142 | 0x143 | 0x150..=0x15f
        );
        self.negative = word >> 20 & 1 | (word >> 22 & 1) << 1;
        self.absolute = word >> 21 & 1 | (word >> 23 & 1) << 1;
        self.dpp = Some(Dpp {
            control,
            row_mask: word >> 28,
            bank_mask: word >> 24 & 15,
            zero: word >> 19 & 1 == 1,
        });
        // Of numbers of 64 bits, row_newbcast alone would work, and hipcc does not make it.
        let narrow =
            self.types().iter().all(|kind| kind.words() == 1) || matches!(self.what, What::Compare(_));
        (known && narrow).then_some(())
    }

    /// An instruction of eight bytes (VOP3).
    pub fn decode_long(first: u32, second: u32) -> Option<Self> {
        let code = first >> 16 & 0x3ff;
        let (what, form) = match code {
            0x000..=0x0ff => (What::Compare(Comparison::decode(code)?), Form::Long),
            0x100..=0x13f if ![MADMK, MADAK].contains(&(code - 0x100)) => {
                (find(VOP2, code - 0x100)?, Form::Long)
            }
            0x100..=0x13f => return None,
            0x140..=0x1bf => (find(VOP1, code - 0x140)?, Form::Long),
            _ => (find(VOP3, code)?, Form::Only),
        };
        let has_mask = match what {
            What::Compare(_) => false,
            What::Row(row) => {
                matches!(row.run, Run::Carry(_) | Run::Carried(_) | Run::Wide(_) | Run::DivideScale(_))
            }
        };
        let mask = match (what, has_mask) {
            (What::Compare(_), _) => first & 0xff,
            (_, true) => first >> 8 & 0x7f,
            _ => VCC as u32,
        };
        let sources = [second, second >> 9, second >> 18].map(|code| Source::of(code & 0x1ff, 0));
        // A literal is for other generations, and so are parts and lanes of a long form.
        if sources.iter().any(|source| [SDWA, DPP, u32::from(LITERAL)].contains(&u32::from(source.code))) {
            return None;
        }
        let vector = Self {
            what,
            form,
            to: if matches!(what, What::Compare(_)) { 0 } else { (first & 0xff) as usize },
            mask: mask as usize,
            sources,
            absolute: if has_mask { 0 } else { first >> 8 & 7 },
            negative: second >> 29,
            clamp: first >> 15 & 1 == 1,
            scale: second >> 27 & 3,
            upper: if has_mask { 0 } else { first >> 11 & 15 },
            sdwa: None,
            dpp: None,
        };
        // The upper halves of what has no halves are none that hipcc asks for, nor the upper half of a destination.
        let halves = vector.types().iter().any(|kind| matches!(kind, Type::B16 | Type::F16));
        let plain = vector.upper == 0 || halves && vector.upper < 8;
        (vector.known() && plain).then_some(vector)
    }

    /// Whether all that the words ask for is what this interpreter does.
    fn known(&self) -> bool {
        let to_float = self.types().first().is_some_and(|kind| kind.is_float());
        let bounded = matches!(self.what, What::Row(row) if matches!(row.run, Run::Bounded(..)));
        let result = (to_float || bounded || !self.clamp) && (to_float || self.scale == 0);
        result && self.sources[..self.count()].iter().all(|source| source.is_known())
    }

    /// The destination's type, where there is a destination, and the sources'.
    fn types(&self) -> &'static [Type] {
        match self.what {
            What::Row(row) => row.types,
            What::Compare(comparison) => match comparison.types() {
                [Type::F16, Type::B32] => &[Type::B64, Type::F16, Type::B32],
                [Type::F32, Type::B32] => &[Type::B64, Type::F32, Type::B32],
                [Type::F64, Type::B32] => &[Type::B64, Type::F64, Type::B32],
                [Type::F16, _] => &[Type::B64, Type::F16, Type::F16],
                [Type::F32, _] => &[Type::B64, Type::F32, Type::F32],
                [Type::F64, _] => &[Type::B64, Type::F64, Type::F64],
                [Type::B16, _] => &[Type::B64, Type::B16, Type::B16],
                [Type::B32, _] => &[Type::B64, Type::B32, Type::B32],
                [Type::B64, _] => &[Type::B64, Type::B64, Type::B64],
            },
        }
    }

    /// How many sources the instruction has.
    fn count(&self) -> usize {
        self.types().len().saturating_sub(1)
    }

    pub fn execute(&self, wave: &mut Wave) -> Result<(), Fault> {
        let types = self.types();
        if !self.has_registers(wave, types) {
            return Err(Fault::Unknown(format!(
                "{} names a register that the kernel does not have",
                self.text()
            )));
        }
        let (active, [a, b, c]) = self.gather(wave, types);
        let mut values = [0; LANES];
        let mut mask = 0;
        let run = match self.what {
            What::Compare(comparison) => {
                for lane in lanes(active) {
                    mask |= u64::from(comparison.holds(a[lane], b[lane])) << lane;
                }
                wave.set_scalar(self.mask, 2, mask);
                if comparison.narrows {
                    wave.set_exec(mask);
                }
                return Ok(());
            }
            What::Row(row) => row.run,
        };
        match run {
            Run::Lane(run) => {
                for lane in lanes(active) {
                    values[lane] = run([a[lane], b[lane], c[lane]]);
                }
            }
            Run::Bounded(plain, clamped) => {
                let run = if self.clamp { clamped } else { plain };
                for lane in lanes(active) {
                    values[lane] = run([a[lane], b[lane], 0]);
                }
            }
            Run::Old(run) => {
                let old = wave.all_lanes(self.to, types[0].words());
                for lane in lanes(active) {
                    values[lane] = run([a[lane], b[lane], old[lane]]);
                }
            }
            Run::Carry(run) | Run::Carried(run) => {
                // Without a carry to take, the instruction does not look at the mask.
                let carried = self.sources[2].scalar(wave, Type::B64);
                for lane in lanes(active) {
                    let (value, carry) = run(a[lane] as u32, b[lane] as u32, carried >> lane & 1 == 1);
                    mask |= u64::from(carry) << lane;
                    values[lane] = u64::from(value);
                }
                wave.set_scalar(self.mask, 2, mask);
            }
            Run::Wide(run) | Run::DivideScale(run) => {
                for lane in lanes(active) {
                    let (value, bit) = run([a[lane], b[lane], c[lane]]);
                    mask |= u64::from(bit) << lane;
                    values[lane] = value;
                }
                wave.set_scalar(self.mask, 2, mask);
            }
            Run::DivideSum(run) => {
                let scaled = wave.vcc();
                for lane in lanes(active) {
                    values[lane] = run([a[lane], b[lane], c[lane]], scaled >> lane & 1 == 1);
                }
            }
            Run::Select => {
                let second = self.sources[2].scalar(wave, Type::B64);
                for lane in lanes(active) {
                    values[lane] = if second >> lane & 1 == 1 { b[lane] } else { a[lane] };
                }
            }
            Run::Below { upper } => {
                for lane in lanes(active) {
                    let below = (1u64 << lane) - 1;
                    let below = if upper { below >> 32 } else { below & 0xffff_ffff };
                    values[lane] = u64::from((b[lane] as u32).wrapping_add((a[lane] & below).count_ones()));
                }
            }
            Run::ReadFirst => {
                let first = wave.exec().trailing_zeros() as usize % LANES;
                wave.set_scalar(self.to, 1, a[first]);
                return Ok(());
            }
            Run::ReadLane => {
                wave.set_scalar(self.to, 1, a[b[0] as usize % LANES]);
                return Ok(());
            }
            Run::WriteLane => {
                wave.set_vector(self.to, b[0] as usize % LANES, a[0] as u32);
                return Ok(());
            }
            Run::Swap => {
                let old = wave.all_lanes(self.to, 1);
                if let Some(other) = self.sources[0].register() {
                    lanes(active).for_each(|lane| wave.set_vector(other, lane, old[lane] as u32));
                }
                values = a;
            }
            Run::Nothing => return Ok(()),
        }
        for lane in lanes(active) {
            self.write(wave, types[0], lane, values[lane]);
        }
        Ok(())
    }

    fn has_registers(&self, wave: &Wave, types: &[Type]) -> bool {
        let to = match self.what {
            What::Compare(_) => None,
            What::Row(row) if matches!(row.run, Run::ReadFirst | Run::ReadLane) => None,
            What::Row(_) => Some(self.to),
        };
        let registers = [to].into_iter().chain(self.sources.map(|source| source.register()));
        registers
            .zip(types)
            .all(|(register, kind)| register.is_none_or(|at| wave.has_vector(at, kind.words())))
    }

    /// The lanes that the instruction changes, and each lane's sources.
    fn gather(&self, wave: &Wave, types: &[Type]) -> (u64, [[u64; LANES]; 3]) {
        let mut values = [[0; LANES]; 3];
        for (i, kind) in types.iter().skip(1).enumerate() {
            values[i] = self.source(wave, i, *kind);
        }
        let exec = wave.exec();
        let Some(dpp) = self.dpp else { return (exec, values) };
        let mut active = 0;
        let own = values[0];
        for lane in lanes(exec) {
            let from = dpp.lane(lane).filter(|from| exec >> from & 1 == 1);
            if dpp.takes_part(lane) && (from.is_some() || dpp.zero) {
                active |= 1 << lane;
                values[0][lane] = from.map_or(0, |from| own[from]);
            }
        }
        (active, values)
    }

    fn source(&self, wave: &Wave, i: usize, kind: Type) -> [u64; LANES] {
        let source = self.sources[i];
        let mut values = match source.register() {
            Some(register) => wave.all_lanes(register, kind.words()),
            None => [source.scalar(wave, kind); LANES],
        };
        if let (Some(sdwa), 0 | 1) = (self.sdwa, i) {
            values = values.map(|value| u64::from(sdwa.from[i].take(value as u32, sdwa.signed[i])));
        }
        if self.upper >> i & 1 == 1 {
            values = values.map(|value| value >> 16);
        }
        // v_cndmask_b32 takes words that the modifiers treat as floats.
        if self.absolute >> i & 1 == 1 {
            values = values.map(|value| value & !kind.sign());
        }
        if self.negative >> i & 1 == 1 {
            values = values.map(|value| value ^ kind.sign());
        }
        values
    }

    fn write(&self, wave: &mut Wave, kind: Type, lane: usize, value: u64) {
        let changes = kind.is_float() && (self.scale != 0 || self.clamp);
        let value = if changes { self.scaled(kind, value) } else { value };
        let Some(sdwa) = self.sdwa.filter(|sdwa| sdwa.to != Part::WHOLE) else {
            wave.set_vector_words(self.to, kind.words(), lane, value);
            return;
        };
        let (shift, bits) = sdwa.to.shift_and_bits();
        let mask = ((1u32 << bits) - 1) << shift;
        let part = (value as u32) << shift & mask;
        let old = wave.vector(self.to, lane);
        let value = match sdwa.unused {
            0 => part,
            1 => {
                ((part << (32 - bits - shift)) as i32 >> (32 - bits - shift)) as u32 & !((1u32 << shift) - 1)
            }
            _ => old & !mask | part,
        };
        wave.set_vector(self.to, lane, value);
    }

    fn scaled(&self, kind: Type, value: u64) -> u64 {
        let factor = [1.0, 2.0, 4.0, 0.5][self.scale as usize & 3];
        let number = compare::number(kind, value) * factor;
        let number = match self.clamp {
            true if number.is_nan() => 0.0,
            true => number.clamp(0.0, 1.0),
            false => number,
        };
        match kind {
            Type::F16 | Type::B16 => u64::from(half::from_f32(number as f32)),
            Type::F32 | Type::B32 => u64::from((number as f32).to_bits()),
            Type::F64 | Type::B64 => number.to_bits(),
        }
    }

    pub fn text(&self) -> String {
        let types = self.types();
        let (name, run) = match self.what {
            What::Compare(comparison) => (comparison.name(), None),
            What::Row(row) => (row.name.to_string(), Some(row.run)),
        };
        let bare = matches!(run, Some(Run::ReadFirst | Run::Nothing | Run::Swap));
        let suffix = match self.form {
            Form::Only => "",
            _ if bare => "",
            Form::Short => "_e32",
            Form::Long => "_e64",
            Form::Sdwa => "_sdwa",
            Form::Dpp => "_dpp",
        };
        let sources = (0..self.count()).map(|i| {
            let mut text = self.sources[i].text(types[i + 1]);
            if let (Some(sdwa), 0 | 1) = (self.sdwa, i)
                && sdwa.signed[i]
            {
                text = format!("sext({text})");
            }
            if self.absolute >> i & 1 == 1 {
                text = format!("|{text}|");
            }
            if self.negative >> i & 1 == 1 {
                text = format!("-{text}");
            }
            text
        });
        let mask = scalar_text(self.mask as u32, 2);
        let to = types.first().map(|kind| vector_text(self.to as u32, kind.words())).unwrap_or_default();
        let scalar = scalar_text(self.to as u32, 1);
        let mut operands = match run {
            None => vec![mask],
            Some(Run::Carry(_) | Run::Carried(_) | Run::Wide(_) | Run::DivideScale(_)) => vec![to, mask],
            Some(Run::ReadFirst | Run::ReadLane) => vec![scalar],
            Some(Run::Nothing) => vec![],
            Some(_) => vec![to],
        };
        operands.extend(sources.take(if matches!(run, Some(Run::Select | Run::Carried(_))) { 2 } else { 3 }));
        if matches!(run, Some(Run::Select | Run::Carried(_))) {
            operands.push(self.sources[2].text(Type::B64));
        }
        let mut text = format!("{name}{suffix} {}", operands.join(", ")).trim_end().to_string();
        if self.upper != 0 {
            let bits: Vec<_> = (0..=self.count())
                .map(|i| (self.upper >> if i == self.count() { 3 } else { i } & 1).to_string())
                .collect();
            text += &format!(" op_sel:[{}]", bits.join(","));
        }
        if self.clamp {
            text += " clamp";
        }
        text += ["", " mul:2", " mul:4", " div:2"][self.scale as usize & 3];
        if let Some(sdwa) = self.sdwa {
            if run.is_some() {
                let unused = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?"][sdwa.unused as usize & 3];
                text += &format!(" dst_sel:{} dst_unused:{unused}", sdwa.to.text());
            }
            for (i, part) in sdwa.from.iter().enumerate().take(self.count().min(2)) {
                text += &format!(" src{i}_sel:{}", part.text());
            }
        }
        if let Some(dpp) = self.dpp {
            text += &dpp.text();
        }
        text
    }
}
