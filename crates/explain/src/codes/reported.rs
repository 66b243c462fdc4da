//! Which codes a program means that writes of errors in a library's words.

use super::errors::{self, Error};
use super::statuses::{Library, Status};

/// The codes that `explain` has for what programs, and ROCm's libraries beneath them, write to a log, each once: `hsa:43`,
/// `hip:719` or `3`.
///
/// # Errors
/// A built-in table is damaged, which tests of these tables exclude.
pub fn reported(text: &str) -> Result<Vec<String>, toml::de::Error> {
    let (hsa, errors, hip) = (Library::Hsa.table()?.codes, errors::all()?, Library::Hip.table()?.codes);
    let is_alone = text.trim().lines().count() == 1;
    let mut codes = Vec::new();
    for code in text.lines().filter_map(|line| of_line(&hsa, &errors, &hip, line, is_alone)) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    Ok(codes)
}

fn of_line(hsa: &[Status], errors: &[Error], hip: &[Status], line: &str, is_alone: bool) -> Option<String> {
    let of_hsa = hsa.iter().find(|status| status.is_error_named_in(line) || status.is_said_in(line));
    let of_hsa = of_hsa.map(|status| status.code(Library::Hsa));
    let of_errors =
        || errors.iter().find(|error| error.is_reported_in(line)).map(|error| error.code.to_string());
    of_hsa.or_else(of_errors).or_else(|| of_hip(hip, line, is_alone).map(|status| status.code(Library::Hip)))
}

/// Words by which programs begin an error of HIP's.
const BEGINNINGS: [&str; 4] = ["hip error", "hip failure", "hiperror", "rocm error"];

/// A code of HIP by its name, or by its number or HIP's text for it behind one of [`BEGINNINGS`]. A text without these has
/// to be all that was asked, or to name HIP: much says `out of memory`.
fn of_hip<'s>(codes: &'s [Status], line: &str, is_alone: bool) -> Option<&'s Status> {
    let behind = behind(line);
    let is_said = |said: &str| {
        behind.is_some_and(|behind| behind.contains(said))
            || is_alone && line.trim() == said
            || said.contains("HIP") && line.contains(said)
    };
    // "unspecified launch failure" begins the text of another code, too: the longest one counts.
    let length = |status: &&Status| status.says.iter().filter(|said| is_said(said)).map(String::len).max();
    let number = behind.and_then(number_at);
    let named = codes.iter().find(|status| status.is_error_named_in(line));
    let numbered = || codes.iter().find(|status| Some(status.number) == number);
    let said = || codes.iter().filter(|status| length(status).is_some()).max_by_key(length);
    named.or_else(numbered).or_else(said)
}

/// The rest of a line after one of [`BEGINNINGS`], which must not continue a word, as `hip error` does in `chip error`.
fn behind(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    let begins =
        |at: usize| !lower.get(..at).is_some_and(|it| it.ends_with(|c: char| c.is_ascii_alphanumeric()));
    BEGINNINGS.iter().find_map(|words| {
        let (at, _) = lower.match_indices(words).find(|(at, _)| begins(*at))?;
        line.get(at + words.len()..)
    })
}

/// The number with which a text begins: `: 719`, ` code 0x2cf at a.cpp`, `_t(719)`. `1.5` is none, and 0 no error.
fn number_at(text: &str) -> Option<u32> {
    let is_mark = |c: char| matches!(c, ' ' | ':' | '=' | '(' | '[' | '_');
    let mut rest = text.trim_start_matches(is_mark);
    for word in ["t", "code", "status"] {
        rest = rest.strip_prefix(word).filter(|rest| rest.starts_with(is_mark)).unwrap_or(rest);
        rest = rest.trim_start_matches(is_mark);
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at_checked(end)?;
    let goes_on = after.strip_prefix('.').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()));
    super::number(digits).filter(|number| *number > 0 && !goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pytorch_llama_cpp_and_others_print_of_hip_names_its_code() {
        for (text, codes) in [
            (
                "RuntimeError: HIP error: unspecified launch failure\nHIP kernel errors might be",
                &["hip:719"][..],
            ),
            ("HIP error: unspecified launch failure in prior launch", &["hip:53"]),
            ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", &["hip:2"]),
            ("RuntimeError: No HIP GPUs are available", &["hip:100"]),
            ("torch: HIP error: out of memory", &["hip:2"]),
            ("ROCm error: an illegal memory access was encountered", &["hip:700"]),
            ("hipMalloc failed: hipErrorOutOfMemory", &["hip:2"]),
            ("failed with HIP error 719", &["hip:719"]),
            ("HIP error code: 100 at a.cpp:7", &["hip:100"]),
            ("HIP error 719\nHIP error 719\nhipErrorNoDevice", &["hip:719", "hip:100"]),
            ("expected hipSuccess", &[]),
            ("unspecified launch failure", &["hip:719"]),
            ("HIP error: device not ready", &["hip:600"]),
            ("RCCL: HIP failure 'unspecified launch failure'", &["hip:719"]),
            ("HSA_STATUS_SUCCESS expected, hipErrorOutOfMemory", &["hip:2"]),
            ("peer access is not supported between these two devices; HIP error: out of memory", &["hip:2"]),
            ("nand: chip error: invalid argument", &[]),
            ("HIP error 0", &[]),
            ("HIP error: 0x2cf", &["hip:719"]),
            ("hipError_t(719)", &["hip:719"]),
            ("HIP error -1", &[]),
            ("HIP error 1.5.2 of the documents", &[]),
            ("error log of make\nfile not found\n", &[]),
            ("Out of memory: Killed process 7 (python)", &[]),
            ("CUDA error: unspecified launch failure", &[]),
        ] {
            assert_eq!(reported(text).unwrap(), codes, "{text}");
        }
    }
}
