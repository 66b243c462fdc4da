//! What a program gives as code: bundles, compressed ones and single code objects.

use hip_code_object::image;

use crate::{assert_fit_for_a_log, hip_code_object::check as check_code_object};

const GPUS: [&str; 4] = ["gfx90a:sramecc+:xnack-", "gfx906", "gfx942:xnack+", ""];

/// The longest header of a compressed bundle, which is read as a whole before its length is known.
const HEADER: u64 = 32;

/// The first byte chooses the GPU; the image is behind it.
pub fn check(data: &[u8]) {
    let Some((choice, image)) = data.split_first() else { return };
    let gpu = GPUS[usize::from(choice % 4)];
    // As the client reads a program's memory: nothing behind the image may be asked for.
    let mut asked = 0;
    let length = image::length(|offset, into| {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(from) = begin.checked_add(into.len()).and_then(|end| image.get(begin..end)) else {
            return false;
        };
        asked = asked.max(offset + into.len() as u64);
        into.copy_from_slice(from);
        true
    });
    let code = image::code_object(image, gpu);
    match &length {
        Ok(length) => assert!(asked <= (*length).max(HEADER), "{asked} bytes are read of {length}"),
        Err(refused) => assert_fit_for_a_log(&refused.to_string()),
    }
    if let (Ok(length), true) = (length, image.starts_with(b"__CLANG_OFFLOAD_BUNDLE__")) {
        let own = usize::try_from(length).ok().and_then(|length| image.get(..length));
        assert!(own.is_none_or(|own| image::code_object(own, gpu) == code), "bytes behind the bundle count");
    }
    match code {
        Ok(code) => check_code_object(&code),
        Err(refused) => assert_fit_for_a_log(&refused.to_string()),
    }
}
