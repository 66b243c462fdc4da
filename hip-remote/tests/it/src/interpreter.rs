//! A program with one instruction changed: what runs is what was sent.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a program whose every instruction of one gfx90a opcode of VOP2 is one of another opcode, and says how many.
///
/// VOP2 (CDNA2 ISA, 13.3.1): bit 31 is 0, bits 30–25 are the opcode, and the opcodes 62 and 63 are other encodings.
pub fn changed(program: &Path, from: u32, to: u32, output: &Path) -> usize {
    let mut bytes = std::fs::read(program).unwrap();
    let code = device_code(&bytes);
    let mut count = 0;
    for word in bytes[code].chunks_exact_mut(4) {
        let value = u32::from_le_bytes(word.try_into().unwrap());
        if value >> 25 == from {
            word.copy_from_slice(&(value & 0x01ff_ffff | to << 25).to_le_bytes());
            count += 1;
        }
    }
    std::fs::write(output, bytes).unwrap();
    std::fs::set_permissions(output, PermissionsExt::from_mode(0o755)).unwrap();
    count
}

/// The .text of the code object in a program's fat binary: the second ELF file in it.
fn device_code(bytes: &[u8]) -> std::ops::Range<usize> {
    let inner = 4 + bytes[4..].windows(4).position(|four| four == b"\x7fELF").unwrap();
    let elf = &bytes[inner..];
    let number = |at: usize, size: usize| {
        (0..size).rev().fold(0, |value, byte| value << 8 | usize::from(elf[at + byte]))
    };
    let (table, size, count) = (number(40, 8), number(58, 2), number(60, 2));
    // SHF_ALLOC and SHF_EXECINSTR: the one section with code.
    let text = (0..count).map(|i| table + i * size).find(|&header| number(header + 8, 8) & 6 == 6).unwrap();
    let begin = inner + number(text + 24, 8);
    begin..begin + number(text + 32, 8)
}
