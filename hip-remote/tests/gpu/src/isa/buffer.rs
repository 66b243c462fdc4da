//! Scratch memory, which each lane has for itself, by way of its buffer descriptor (MUBUF).
//!
//! hipcc makes these instructions for arrays and registers that a kernel spills. The words of the lanes lie side by
//! side, as the descriptor of scratch memory says: word `w` of lane `l` is at `(w * 64 + l) * 4`.

use super::Around;
use super::access::{Access, load, load_signed, store};
use super::operand::{Source, Type, scalar_text, vector_text};
use crate::fault::Fault;
use crate::wave::{LANES, Wave, lanes};

struct Row {
    code: u32,
    name: &'static str,
    /// Caches, which there are none of here, have no access.
    access: Option<Access>,
}

const fn row(code: u32, name: &'static str, access: Access) -> Row {
    Row { code, name, access: Some(access) }
}

const fn half(bytes: usize, high: bool) -> Access {
    Access::LoadHalf { bytes, signed: false, high }
}

static ROWS: &[Row] = &[
    row(0x10, "buffer_load_ubyte", load(1)),
    row(0x11, "buffer_load_sbyte", load_signed(1)),
    row(0x12, "buffer_load_ushort", load(2)),
    row(0x13, "buffer_load_sshort", load_signed(2)),
    row(0x14, "buffer_load_dword", load(4)),
    row(0x15, "buffer_load_dwordx2", load(8)),
    row(0x16, "buffer_load_dwordx3", load(12)),
    row(0x17, "buffer_load_dwordx4", load(16)),
    row(0x18, "buffer_store_byte", store(1)),
    row(0x19, "buffer_store_byte_d16_hi", Access::Store { bytes: 1, high: true }),
    row(0x1a, "buffer_store_short", store(2)),
    row(0x1b, "buffer_store_short_d16_hi", Access::Store { bytes: 2, high: true }),
    row(0x1c, "buffer_store_dword", store(4)),
    row(0x1d, "buffer_store_dwordx2", store(8)),
    row(0x1e, "buffer_store_dwordx3", store(12)),
    row(0x1f, "buffer_store_dwordx4", store(16)),
    row(0x20, "buffer_load_ubyte_d16", half(1, false)),
    row(0x21, "buffer_load_ubyte_d16_hi", half(1, true)),
    row(0x24, "buffer_load_short_d16", half(2, false)),
    row(0x25, "buffer_load_short_d16_hi", half(2, true)),
    Row { code: 0x28, name: "buffer_wbl2", access: None },
    Row { code: 0x29, name: "buffer_invl2", access: None },
    Row { code: 0x3e, name: "buffer_wbinvl1", access: None },
    Row { code: 0x3f, name: "buffer_wbinvl1_vol", access: None },
];

#[derive(Clone)]
pub struct Buffer {
    row: &'static Row,
    address: usize,
    data: usize,
    descriptor: usize,
    scalar: Source,
    offset: usize,
    offen: bool,
    glc: bool,
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Buffer {
    pub fn decode(first: u32, second: u32) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.code == first >> 18 & 0x7f)?;
        // An index, local memory and coherence with the host are none that scratch memory has.
        if row.access.is_some() && (first >> 13 & 1 == 1 || first >> 16 & 1 == 1 || first >> 15 & 1 == 1) {
            return None;
        }
        let file = if second >> 23 & 1 == 1 { 256 } else { 0 };
        Some(Self {
            row,
            address: (second & 0xff) as usize,
            data: (second >> 8 & 0xff) as usize + file,
            descriptor: (second >> 16 & 0x1f) as usize * 4,
            scalar: Source::of(second >> 24, 0),
            offset: (first & 0xfff) as usize,
            offen: first >> 12 & 1 == 1,
            glc: first >> 14 & 1 == 1,
        })
    }

    pub fn execute(&self, wave: &mut Wave, _: &mut Around<'_>) -> Result<(), Fault> {
        let Some(access) = self.row.access else { return Ok(()) };
        // The descriptor's first word is where the wave's scratch memory begins: 0, for it is the wave's alone.
        let base = wave.scalar(self.descriptor, 1) + self.scalar.scalar(wave, Type::B32);
        if wave.scalar(self.descriptor + 1, 1) >> 31 != 1 {
            return Err(Fault::Unknown(format!(
                "{} is by a descriptor that is not of scratch memory",
                self.text()
            )));
        }
        for lane in lanes(wave.exec()) {
            let own = if self.offen { wave.vector(self.address, lane) as usize } else { 0 };
            let offset = own + self.offset + base as usize / LANES;
            private(access, wave, offset, self.data, Some(self.data), lane)?;
        }
        Ok(())
    }

    pub fn text(&self) -> String {
        let Some(access) = self.row.access else { return self.row.name.to_string() };
        let data = vector_text(self.data as u32, access.words());
        let address = if self.offen { vector_text(self.address as u32, 1) } else { "off".into() };
        let mut text = format!(
            "{} {data}, {address}, {}, {}",
            self.row.name,
            scalar_text(self.descriptor as u32, 4),
            self.scalar.text(Type::B32)
        );
        if self.offen {
            text += " offen";
        }
        if self.offset != 0 {
            text += &format!(" offset:{}", self.offset);
        }
        if self.glc {
            text += " glc";
        }
        text
    }
}

/// Does an access to a lane's scratch memory, whose words are gathered and put back.
pub fn private(
    access: Access,
    wave: &mut Wave,
    offset: usize,
    data: usize,
    to: Option<usize>,
    lane: usize,
) -> Result<(), Fault> {
    let has = wave.scratch.len() / LANES;
    let bytes = access.bytes();
    if offset.saturating_add(bytes) > has {
        return Err(Fault::Local { offset: offset as u64, bytes, has });
    }
    let place = |at: usize| (at / 4 * LANES + lane) * 4 + at % 4;
    let mut words = [0u8; 16];
    for (i, byte) in words[..bytes].iter_mut().enumerate() {
        *byte = wave.scratch[place(offset + i)];
    }
    unsafe { access.run(words.as_mut_ptr(), wave, data, to, lane) };
    if access.writes() {
        for (i, byte) in words[..bytes].iter().enumerate() {
            wave.scratch[place(offset + i)] = *byte;
        }
    }
    Ok(())
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}
