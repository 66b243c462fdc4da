//! What LXD and Incus answer to `query /1.0/resources`, as far as it is about GPUs.
//!
//! `shared/api/resource.go` of both projects defines the fields. Others are passed over, and what is absent stays
//! absent: an empty text is how Go's encoder writes a text that is not there.

use anyhow::Context as _;
use serde::{Deserialize, Deserializer};

/// The longest answer that is read. A server of 512 threads has about 2 MB, most of it flags of its CPUs.
pub const LIMIT: usize = 16 << 20;

/// The most cards that an answer may have: more than any machine has.
const MOST_CARDS: usize = 1024;

/// A card as LXD sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Card {
    /// Four hexadecimal digits.
    #[serde(default, deserialize_with = "text")]
    pub vendor_id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub vendor: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub product: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub pci_address: Option<String>,
    /// The driver that is bound to the card.
    #[serde(default, deserialize_with = "text")]
    pub driver: Option<String>,
    /// Absent without a driver, and with one that makes no nodes, as vfio-pci.
    #[serde(default)]
    pub drm: Option<Drm>,
    #[serde(default)]
    pub sriov: Option<Sriov>,
}

/// The nodes of a card.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Drm {
    #[serde(default, deserialize_with = "text")]
    pub card_name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub render_name: Option<String>,
}

/// How a card is divided.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sriov {
    #[serde(default)]
    pub current_vfs: Option<u64>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    gpu: Option<Gpus>,
    /// The answer itself, where the caller asked for it over HTTP and not by `query`.
    #[serde(default)]
    metadata: Option<Box<Answer>>,
}

#[derive(Deserialize)]
struct Gpus {
    /// Go writes a list of none as null.
    #[serde(default)]
    cards: Option<Vec<Card>>,
}

/// The cards of an answer.
///
/// # Errors
/// When the text is no answer of `resources`, or lists more cards than there can be.
pub fn cards(answer: &[u8]) -> anyhow::Result<Vec<Card>> {
    let answer: Answer =
        serde_json::from_slice(answer).context("it is no JSON of LXD's or Incus's resources")?;
    let gpus = answer.gpu.or(answer.metadata.and_then(|metadata| metadata.gpu));
    let gpus = gpus.context("it has no `gpu` with `cards`: give the answer to `lxc query /1.0/resources`")?;
    let cards = gpus.cards.unwrap_or_default();
    anyhow::ensure!(cards.len() <= MOST_CARDS, "it lists {} cards, more than any machine has", cards.len());
    Ok(cards)
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_empty_or_null_is_absent_and_the_rest_is_passed_over() {
        let answer = r#"{"cpu":{"sockets":[]},"gpu":{"total":2,"cards":[
            {"driver":"","drm":null,"vendor_id":"1002","usb_address":"1:2","new":{"a":[1]}},
            {"vendor_id":"1002","drm":{"id":0,"render_name":"renderD128","card_name":""},"numa_node":0}]}}"#;
        let [bare, driven] = cards(answer.as_bytes()).unwrap().try_into().unwrap();
        assert_eq!((bare.driver, bare.drm, bare.pci_address, bare.sriov), (None, None, None, None));
        let drm = Drm { card_name: None, render_name: Some("renderD128".to_owned()) };
        assert_eq!(driven.drm, Some(drm));
        let within = format!(r#"{{"type":"sync","metadata":{answer}}}"#);
        assert_eq!(cards(within.as_bytes()).unwrap().len(), 2);
        assert_eq!(cards(br#"{"gpu":{"cards":null,"total":0}}"#).unwrap(), []);
    }

    #[test]
    fn what_is_no_such_answer_is_an_error() {
        let many = format!(r#"{{"gpu":{{"cards":[{}]}}}}"#, vec!["{}"; 1025].join(","));
        let deep = format!(r#"{{"gpu":{}"#, "[".repeat(100_000));
        for (answer, start) in [
            ("", "it is no JSON"),
            ("gpu: {}", "it is no JSON"),
            (r#"{"gpu":{"cards":[{"vendor_id":4098}]}}"#, "it is no JSON"),
            ("{}", "it has no `gpu`"),
            (r#"{"metadata":{"cpu":{}}}"#, "it has no `gpu`"),
            (many.as_str(), "it lists 1025 cards"),
            (deep.as_str(), "it is no JSON"),
        ] {
            let error = cards(answer.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }
}
