//! What a container's environment asks for, read a second time in another way.

use allocation::{
    Render,
    request::{GPU_COUNT, LONGEST_VALUE, MOST_GPUS, Request, Selector, VISIBLE_DEVICES},
};
use inventory::PciAddress;

use crate::assert_fit_for_a_log;

/// An environment, an entry a line.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Request::from_env(text.split('\n'));
    if let Err(error) = &read {
        assert_fit_for_a_log(&error.to_string());
    }
    let value = |name: &str| {
        let prefix = format!("{name}=");
        text.split('\n').filter_map(|line| line.strip_prefix(prefix.as_str())).next_back()
    };
    let expected = both(value(VISIBLE_DEVICES).map(devices), value(GPU_COUNT).map(count));
    match (&read, expected) {
        (Ok(read), Ok(expected)) => assert_eq!(*read, expected, "{text:?}"),
        (Err(_), Err(())) => {}
        (read, expected) => panic!("{text:?} is read as {read:?}, and should be {expected:?}"),
    }
    match read {
        Ok(Some(Request::Listed(list))) => reads_again_as_it_is_shown(list),
        Ok(Some(Request::Count(count))) => assert!((1..=MOST_GPUS).contains(&count)),
        _ => {}
    }
}

fn reads_again_as_it_is_shown(list: Vec<Selector>) {
    assert!(!list.is_empty() && list.len() <= MOST_GPUS as usize);
    let shown = list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    match Request::from_visible_devices(&shown) {
        Ok(again) => assert_eq!(again, Request::Listed(list)),
        // A range is shown as its members, which can be longer than what was read.
        Err(error) => {
            assert!(error.to_string().ends_with("more than the 4096 that are read"), "{shown}: {error}");
        }
    }
}

type Read = Result<Request, ()>;

fn both(devices: Option<Read>, count: Option<Read>) -> Result<Option<Request>, ()> {
    let (devices, count) = (devices.transpose()?, count.transpose()?);
    let asks =
        |request: &Option<Request>| request.as_ref().is_some_and(|request| *request != Request::Nothing);
    match (asks(&devices), asks(&count)) {
        (true, true) => Err(()),
        (true, false) => Ok(devices),
        (false, true) => Ok(count),
        (false, false) => Ok(devices.or(count)),
    }
}

fn strip(value: &str) -> Result<&str, ()> {
    if value.len() > LONGEST_VALUE { Err(()) } else { Ok(value.trim_matches(|c| c == ' ' || c == '\t')) }
}

fn count(value: &str) -> Read {
    let value = strip(value)?;
    if !value.chars().all(|c| c.is_ascii_digit()) {
        return Err(());
    }
    match value.trim_start_matches('0') {
        "" => Ok(Request::Nothing),
        digits => match digits.parse::<u32>() {
            Ok(count) if count <= MOST_GPUS => Ok(Request::Count(count)),
            _ => Err(()),
        },
    }
}

fn devices(value: &str) -> Read {
    let value = strip(value)?;
    match value.to_ascii_lowercase().as_str() {
        "all" => return Ok(Request::All),
        "" | "none" | "void" => return Ok(Request::Nothing),
        _ => {}
    }
    let mut asked = 0_u64;
    let mut list: Vec<Selector> = Vec::new();
    for part in value.split(',') {
        let part = part.trim_matches(|c| c == ' ' || c == '\t');
        let named = match bounds(part) {
            Some((first, last)) => {
                let (first, last) = (first?, last?);
                asked += u64::from(last).checked_sub(u64::from(first)).ok_or(())? + 1;
                if asked > u64::from(MOST_GPUS) {
                    return Err(());
                }
                (first..=last).map(Selector::Index).collect()
            }
            None => {
                asked += 1;
                vec![one(part)?]
            }
        };
        list.extend(named.into_iter().filter(|selector| !list.contains(selector)).collect::<Vec<_>>());
        if asked > u64::from(MOST_GPUS) {
            return Err(());
        }
    }
    Ok(Request::Listed(list))
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

/// The ends of a range, each a number or too large for one.
fn bounds(part: &str) -> Option<(Result<u32, ()>, Result<u32, ()>)> {
    let (first, last) = part.split_once('-').filter(|(first, last)| digits(first) && digits(last))?;
    Some((first.parse().map_err(drop), last.parse().map_err(drop)))
}

fn one(part: &str) -> Result<Selector, ()> {
    if digits(part) {
        return part.parse().map(Selector::Index).map_err(drop);
    }
    if let Some(number) = part.strip_prefix("/dev/dri/").unwrap_or(part).strip_prefix("renderD") {
        let plain = digits(number) && number.parse::<u32>().is_ok_and(|read| read.to_string() == number);
        let render =
            Render::parse(part).filter(|render| plain && render.to_string() == format!("renderD{number}"));
        return render.map(Selector::Render).ok_or(());
    }
    if part.len() > 4 && part.to_ascii_lowercase().starts_with("gpu-") {
        let fits = part.len() <= 64 && part.chars().all(|c| c == '-' || c.is_ascii_alphanumeric());
        return if fits { Ok(Selector::Uuid(part.to_owned())) } else { Err(()) };
    }
    let address = PciAddress::parse(part).ok_or(())?;
    // A domain is shown with the four digits that it has at least; it may be written with up to eight.
    let (domain, rest) = part.split_once(':').filter(|(_, rest)| rest.contains(':')).unwrap_or(("0", part));
    let full = format!("{:0>4}:{rest}", domain.trim_start_matches('0')).to_ascii_lowercase();
    assert_eq!(address.to_string(), full, "the address that stands there");
    Ok(Selector::Pci(address))
}
