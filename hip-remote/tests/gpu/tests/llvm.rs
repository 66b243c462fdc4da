//! Compares the decoder's names and operands with llvm-mc's, for each instruction that the interpreter knows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use test_gpu::isa::{self, Instruction};

/// Operands to try with each instruction whose name begins so. llvm-mc refuses what does not fit.
const SHAPES: &[(&[&str], &[&str])] = &[
    (
        &["s_"],
        &[
            "",
            "s5",
            "s[6:7]",
            "7",
            "0x1234",
            "s5, 0x1234",
            "s[6:7], 0x1234",
            "s5, s9",
            "s5, 17",
            "s5, -3",
            "s5, 0x12345678",
            "vcc_lo, m0",
            "s5, exec_hi",
            "s5, 1.0",
            "s[6:7], s[8:9]",
            "vcc, exec",
            "s[6:7], 1",
            "s[6:7], s9",
            "s9, s[6:7]",
            "s9, -5",
            "s5, s9, s100",
            "s5, 64, s1",
            "s5, s1, -16",
            "s5, 0xabcdef01, s3",
            "s5, s3, 0xabcdef01",
            "ttmp3, s1, s2",
            "s[6:7], s[8:9], s[10:11]",
            "exec, vcc, exec",
            "s[6:7], s[8:9], -1",
            "s[6:7], s[8:9], s3",
            "s[6:7], s3, s4",
            "s5, s[8:9], 0x10",
            "s5, s[8:9], s3",
            "s[6:7], s[8:9], 0xfffff",
            "s[4:7], s[8:9], -0x20",
            "s[8:15], s[2:3], 0x0",
            "s[16:31], s[2:3], m0",
            "s5, s[8:9], 0x10 glc",
            "s5, hwreg(HW_REG_SH_MEM_BASES, 16, 16)",
            "s5, hwreg(HW_REG_SH_MEM_BASES)",
            "s5, s[8:9], s3 offset:0x8",
        ],
    ),
    (
        &["v_"],
        &[
            "",
            "v1, v2",
            "v255, s7",
            "v3, -16",
            "v3, 64",
            "v3, 0x12345678",
            "v3, 0.5",
            "v3, vcc_hi",
            "v[2:3], v4",
            "v4, v[2:3]",
            "v[2:3], v[4:5]",
            "v[2:3], s[4:5]",
            "v[2:3], 1.0",
            "v[2:3], 0.15915494309189532",
            "v3, 0.15915494",
            "s3, v5",
            "v3, src_shared_base",
            "v1, v2, v3",
            "v1, s2, v3",
            "v1, 0x12345678, v3",
            "v1, -4.0, v200",
            "v1, v2, s3",
            "v1, -v2, |v3|",
            "v1, v2, v3 clamp",
            "v1, v2, v3 mul:2",
            "v1, v2, v3 div:2",
            "v1, exec_lo, v3",
            "v1, v2, v3, vcc",
            "v1, s4, v3, s[6:7]",
            "v1, vcc, v2, v3",
            "v1, s[6:7], v2, v3",
            "v1, vcc, v2, v3, vcc",
            "v1, s[6:7], v2, v3, s[8:9]",
            "v1, vcc, 5, v3, vcc",
            "v[2:3], v[4:5], v[6:7]",
            "v[2:3], s[4:5], v[6:7]",
            "v[2:3], -v[4:5], |v[6:7]|",
            "v[2:3], v4, v[6:7]",
            "v[2:3], 3, v[6:7]",
            "v[2:3], v[4:5], v6",
            "v[2:3], v[4:5], -2.0",
            "v1, v2, v3, v4",
            "v1, s2, v3, v4",
            "v1, v2, 7, v4",
            "v1, -v2, v3, |v4|",
            "v1, v2, v3, v4 clamp",
            "v1, v2, v3, 1.0",
            "v[2:3], v[4:5], v[6:7], v[8:9]",
            "v[2:3], v[4:5], -v[6:7], v[8:9]",
            "v[2:3], s[4:5], v4, v5, v[8:9]",
            "v1, vcc, v2, v3, v4",
            "v[2:3], vcc, v[4:5], v[6:7], v[8:9]",
            "vcc, v1, v2",
            "vcc, s1, v2",
            "s[4:5], v1, v2",
            "s[4:5], -v1, |v2|",
            "vcc, v[2:3], v[4:5]",
            "s[4:5], v[2:3], v[4:5]",
            "vcc, 0x12345678, v3",
            "s[4:5], v[2:3], v4",
            "vcc, v[2:3], v4",
            "s[4:5], 3, v4",
            "s5, v6, s7",
            "s5, v6, 7",
            "v5, s6, s7",
            "v5, 3, m0",
            "v[2:3], v[4:5], v[6:7] op_sel:[1,0]",
            "v[2:3], v[4:5], v[6:7] op_sel_hi:[0,1]",
            "v[2:3], v[4:5], v[6:7] neg_lo:[1,0] neg_hi:[0,1]",
            "v[2:3], v[4:5], s[6:7] op_sel_hi:[1,0]",
            "v[2:3], v[4:5], v[6:7], v[8:9] op_sel_hi:[1,0,1]",
            "v1, v2, v3 op_sel:[1,0] op_sel_hi:[0,0]",
            "v1, v2, v3, v4 neg_lo:[0,1,0]",
            "v1, v2, v3 op_sel:[1,0,0]",
            "v1, v2, v3, v4 op_sel:[0,1,0,0]",
            "v1, a2",
            "a1, v2",
            "a1, 5",
            "v1, s2, 0x12345678, v3",
            "v1, v2, v3, 0x12345678",
            "v1, v2, v3 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:DWORD",
            "v1, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_3",
            "v1, sext(v2), v3 dst_sel:WORD_0 dst_unused:UNUSED_SEXT src0_sel:BYTE_2 src1_sel:DWORD",
            "v1, s2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1",
            "v1, -v2, |v3| dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD",
            "v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1",
            "v1, sext(v2) dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0",
            "vcc, v1, v2 src0_sel:BYTE_0 src1_sel:WORD_1",
            "s[6:7], v1, v2 src0_sel:DWORD src1_sel:WORD_1",
            "v1, vcc, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:BYTE_0",
            "v1, v2, v3 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
            "v1, v2, v3 row_shr:1 row_mask:0xa bank_mask:0xf bound_ctrl:0",
            "v1, v2 row_bcast:15 row_mask:0xa bank_mask:0xf",
            "v1, v2 wave_shr:1 row_mask:0xf bank_mask:0xf",
            "v1, -v2, v3 row_mirror row_mask:0xf bank_mask:0x3",
            "v1, v2 row_ror:4 row_mask:0xf bank_mask:0xf",
            "v1, v2 row_newbcast:3 row_mask:0xf bank_mask:0xf",
        ],
    ),
    (
        &["ds_"],
        &[
            "",
            "v1, v2",
            "v1, v2 offset:65535",
            "v1, v2, v3",
            "v1, v2, v3 offset:4",
            "v1, v2, v3, v4",
            "v1, v2, v3, v4 offset:8",
            "v1, v[2:3]",
            "v1, v[2:3] offset:16",
            "v1, v[2:4]",
            "v1, v[4:7]",
            "v[2:3], v1",
            "v[2:4], v1",
            "v[4:7], v1",
            "v[4:7], v1 offset:256",
            "v1, v2, v3 offset0:3 offset1:255",
            "v[2:3], v1 offset1:1",
            "v[2:3], v1 offset0:7",
            "v1, v[2:3], v[4:5]",
            "v1, v[2:3], v[4:5] offset0:1 offset1:2",
            "v[4:7], v1 offset0:1 offset1:2",
            "v1, a2",
            "a1, v2",
            "v1, v2 offset:0x801f",
            "v1, v2 offset:0x1f",
        ],
    ),
    (
        &["global_"],
        &[
            "v1, v[2:3], off",
            "v1, v[2:3], off offset:-4096",
            "v1, v2, s[4:5]",
            "v1, v2, s[4:5] offset:4095 glc slc",
            "v[6:7], v[2:3], off",
            "v[6:8], v[2:3], off",
            "v[6:9], v[2:3], off glc",
            "v[2:3], v1, off",
            "v[2:3], v1, off offset:8",
            "v2, v1, s[4:5]",
            "v[2:3], v[6:7], off",
            "v[2:3], v[6:8], off",
            "v[2:3], v[6:9], off slc",
            "v1, v[2:3], v4, off glc",
            "v1, v[2:3], v[4:5], off glc",
            "v[6:7], v[2:3], v[4:5], off glc",
            "v[6:7], v[2:3], v[8:11], off offset:16 glc",
            "v1, v2, v3, s[4:5] glc",
            "v[2:3], v[6:9], off",
            "v2, v[6:7], s[4:5]",
            "a1, v[2:3], off",
            "v[2:3], a1, off",
        ],
    ),
    (
        &["flat_"],
        &[
            "v1, v[2:3]",
            "v1, v[2:3] offset:4095",
            "v[6:7], v[2:3]",
            "v[6:8], v[2:3]",
            "v[6:9], v[2:3] glc",
            "v[2:3], v1",
            "v[2:3], v1 offset:8",
            "v[2:3], v[6:7]",
            "v[2:3], v[6:8]",
            "v[2:3], v[6:9] slc",
            "v1, v[2:3], v4 glc",
            "v1, v[2:3], v[4:5] glc",
            "v[6:7], v[2:3], v[4:5] glc",
            "v[6:7], v[2:3], v[8:11] offset:16 glc",
        ],
    ),
    (
        &["buffer_"],
        &[
            "",
            "v1, off, s[0:3], 0",
            "v1, off, s[4:7], s33 offset:4095",
            "v1, v2, s[0:3], 0 offen",
            "v1, v2, s[0:3], s32 offen offset:8 glc",
            "v[2:3], off, s[0:3], 0 offset:8",
            "v[2:4], off, s[0:3], 0",
            "v[4:7], v2, s[0:3], 0 offen",
            "a1, off, s[0:3], 0",
        ],
    ),
];

/// The lines that llvm-mc accepts, with their bytes. It assembles them, or disassembles bytes.
fn llvm(arguments: &[&str], lines: &str) -> Vec<(String, Vec<u32>)> {
    let mut child = Command::new("llvm-mc-14")
        .args(["-arch=amdgcn", "-mcpu=gfx90a", "-show-encoding"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("llvm-mc-14: install it by apt-get install llvm-14");
    let mut input = child.stdin.take().expect("a pipe");
    let lines = lines.to_string();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("llvm-mc-14");
    writer.join().expect("the writer").expect("writing to llvm-mc-14");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .filter_map(|line| {
            let (instruction, encoding) = line.split_once("; encoding: [")?;
            let bytes: Vec<u8> = encoding
                .trim_end_matches(']')
                .split(',')
                .map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16).ok())
                .collect::<Option<_>>()?;
            let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
            Some((instruction.split_whitespace().collect::<Vec<_>>().join(" "), words.collect()))
        })
        .collect()
}

/// Numbers of one notation: LLVM writes some in hexadecimal and some not.
fn normalized(text: &str) -> String {
    let words = text.split_inclusive([' ', ',', ':', '[', ']', '|', '(', ')']).map(|word| {
        let end =
            word.len() - word.chars().next_back().filter(|c| !c.is_alphanumeric()).map_or(0, char::len_utf8);
        let (number, separator) = word.split_at(end);
        let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
        match digits.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
            Some(Ok(value)) => format!("{sign}{value}{separator}"),
            _ => word.to_string(),
        }
    });
    words.collect()
}

#[test]
fn the_decoder_reads_each_instruction_as_llvm_does() {
    let names = isa::names();
    let mut lines = String::new();
    for name in &names {
        for (prefixes, shapes) in SHAPES {
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                for shape in *shapes {
                    lines += &format!("{name} {shape}\n");
                }
            }
        }
    }
    // What llvm-mc prints of bytes is what it reads of them, and not what was written.
    let bytes: String = llvm(&[], &lines)
        .iter()
        .map(|(_, words)| {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            bytes.map(|byte| format!("{byte:#04x} ")).collect::<String>() + "\n"
        })
        .collect();
    let assembled = llvm(&["-disassemble"], &bytes);
    let mut seen: BTreeMap<&str, usize> = names.iter().map(|name| (name.as_str(), 0)).collect();
    let mut wrong = Vec::new();
    let mut unknown = BTreeSet::new();
    for (text, words) in &assembled {
        let whole = text.split(' ').next().unwrap_or("");
        let base = ["_e32", "_e64", "_sdwa", "_dpp"]
            .iter()
            .find_map(|suffix| whole.strip_suffix(suffix))
            .unwrap_or(whole);
        let Some(instruction) = Instruction::decode(words) else {
            unknown.insert(text.clone());
            continue;
        };
        if instruction.size as usize != words.len() * 4 {
            wrong.push(format!("{text}: {} bytes", instruction.size));
        }
        let ours = instruction.text();
        let same = match base {
            // LLVM names the counters that a wait is for, and the interpreter waits for none.
            "s_waitcnt" => ours.starts_with(base),
            // LLVM has words for a swizzle's pattern.
            "ds_swizzle_b32" => ours.split(" offset").next() == text.split(" offset").next(),
            _ => normalized(&ours) == normalized(text),
        };
        if same {
            *seen.entry(base).or_default() += 1;
        } else {
            wrong.push(format!("{text} is read as {ours}"));
        }
    }
    let none: Vec<_> = seen.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    println!(
        "{} instructions in {} forms, of which {} have operands that are refused",
        names.len(),
        assembled.len(),
        unknown.len()
    );
    // The interpreter refuses to clamp most whole numbers, to take 64 bits from other lanes, and to read hardware
    // registers but for one.
    let meant = |line: &&String| [" clamp", "_dpp ", "s_getreg_b32 "].iter().any(|part| line.contains(part));
    let unexpected: Vec<_> = unknown.iter().filter(|line| !meant(line)).collect();
    assert!(unexpected.is_empty(), "refused: {unexpected:#?}");
    assert!(wrong.is_empty(), "{} are read otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(none.is_empty(), "llvm-mc assembled no form of {none:?}");
}
