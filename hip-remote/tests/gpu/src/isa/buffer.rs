//! Scratch memory, which each lane has for itself, by way of its buffer descriptor (MUBUF).
//!
//! hipcc makes these instructions for arrays and registers that a kernel spills. The words of the lanes lie side by
//! side, as the descriptor of scratch memory says: word `w` of lane `l` is at `(w * 64 + l) * 4`.

use super::Around;
use super::access::Access;
use super::loads_and_stores::LOADS_AND_STORES;
use super::operand::{Source, Type, scalar_text, vector_text};
use crate::fault::Fault;
use crate::wave::{LANES, Wave, lanes};

/// Instructions of caches, of which this GPU has none.
static CACHES: &[(u32, &str)] = &[(0x28, "wbl2"), (0x29, "invl2"), (0x3e, "wbinvl1"), (0x3f, "wbinvl1_vol")];

#[derive(Clone)]
pub struct Buffer {
    name: &'static str,
    /// A cache has none.
    access: Option<Access>,
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
        let code = first >> 18 & 0x7f;
        let (name, access) = match LOADS_AND_STORES.iter().find(|row| row.code == code) {
            Some(row) => (row.name, Some(row.access)),
            None => (CACHES.iter().find(|(number, _)| *number == code)?.1, None),
        };
        // An index, local memory and coherence with the host are none that scratch memory has.
        if access.is_some() && (first >> 13 & 1 == 1 || first >> 16 & 1 == 1 || first >> 15 & 1 == 1) {
            return None;
        }
        let file = if second >> 23 & 1 == 1 { 256 } else { 0 };
        Some(Self {
            name,
            access,
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
        let Some(access) = self.access else { return Ok(()) };
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
        let Some(access) = self.access else { return format!("buffer_{}", self.name) };
        let data = vector_text(self.data as u32, access.words());
        let address = if self.offen { vector_text(self.address as u32, 1) } else { "off".into() };
        let mut text = format!(
            "buffer_{} {data}, {address}, {}, {}",
            self.name,
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

pub fn names() -> impl Iterator<Item = String> {
    let caches = CACHES.iter().map(|(_, name)| *name);
    LOADS_AND_STORES.iter().map(|row| row.name).chain(caches).map(|name| format!("buffer_{name}"))
}
