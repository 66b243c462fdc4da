//! RAS counters and bad pages (amdgpu_ras.c).

use inventory::Unknown;
use inventory::readings::{RasBlock, RetiredPages};

use super::source::Source;
use crate::attribute;

/// The most bytes that are read of the list of bad pages: a page has 28 bytes, and the driver gives up on a
/// card at some hundreds (`bad_page_threshold`).
const LIMIT: usize = 1 << 20;

const BAD_PAGES: &str = "ras/gpu_vram_bad_pages";

pub(super) fn read(source: &mut Source<'_>) -> (Vec<RasBlock>, Option<RetiredPages>) {
    let names = source.names("ras");
    let blocks = names.iter().filter_map(|name| {
        let block = name.strip_suffix("_err_count")?;
        Some(counters(source, &format!("ras/{name}"), block))
    });
    let blocks = blocks.take(super::MOST).collect();
    let pages = names.iter().any(|name| BAD_PAGES.ends_with(name)).then(|| pages(source)).flatten();
    (blocks, pages)
}

/// The text of a file during a reset (`amdgpu_ras_sysfs_read`), which is no fault.
const INACCESSIBLE: &str = "Query currently inaccessible";

/// `ue: N`, `ce: N` and, of UMC or by ACA, `de: N`: every file has `ue`. Of a block that cannot be read, none is known.
fn counters(source: &mut Source<'_>, name: &str, block: &str) -> RasBlock {
    let mut found =
        RasBlock { block: block.to_owned(), correctable: None, deferred: None, uncorrectable: None };
    let Some(text) = source.text(name).filter(|text| text != INACCESSIBLE) else { return found };
    let shown = source.shown(name);
    let mut is_counter = false;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let counter = match key.trim() {
            "ue" => &mut found.uncorrectable,
            "ce" => &mut found.correctable,
            "de" => &mut found.deferred,
            _ => continue,
        };
        is_counter = true;
        *counter =
            source.known(name, value.trim().parse().map_err(|_| attribute::not_a("counter", line, &shown)));
    }
    if !is_counter {
        source.fault(name, Unknown::because(format!("{} says {:?}", shown.display(), first_words(&text))));
    }
    found
}

fn first_words(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A line a page: `0x00000001 : 0x00001000 : R`. R is reserved (retired), P pending, F could not be reserved. A card without
/// a bad page has an empty file.
fn pages(source: &mut Source<'_>) -> Option<RetiredPages> {
    let bytes = source.long_bytes(BAD_PAGES, LIMIT)?;
    let mut pages = RetiredPages::default();
    if bytes.is_empty() {
        return Some(pages);
    }
    let shown = source.shown(BAD_PAGES);
    let text = attribute::text_of(bytes, &shown);
    for line in source.known(BAD_PAGES, text)?.lines() {
        let count = match line.rsplit(':').next().map(str::trim) {
            Some("R") => &mut pages.retired,
            Some("P") => &mut pages.pending,
            Some("F") => &mut pages.unreservable,
            _ => {
                source.fault(BAD_PAGES, attribute::not_a("list of bad pages", line, &shown));
                return None;
            }
        };
        *count += 1;
    }
    Some(pages)
}
