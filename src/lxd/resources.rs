//! What LXD and Incus answer to `query /1.0/resources`, as far as it is about GPUs.
//!
//! The fields are those of `shared/api/resource.go` in both projects. Others are passed over, and what is absent stays
//! absent: an empty text is how Go's encoder writes a text that is not there.

use serde::{Deserialize, Deserializer};

/// The longest answer that is read. A server of 512 threads has about 2 MB, most of it flags of its CPUs.
pub const LIMIT: usize = 16 << 20;

/// More cards than any machine has.
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
    pub product_id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub product: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub pci_address: Option<String>,
    /// What is bound to it.
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

/// What a card has given out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sriov {
    #[serde(default)]
    pub current_vfs: Option<u64>,
}

/// What was read is no such answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it is no JSON of LXD's or Incus's resources: {0}")]
    Malformed(serde_json::Error),
    #[error("it has no `gpu` with `cards`: what is wanted is the answer to `lxc query /1.0/resources`")]
    OfSomethingElse,
    #[error("it lists {0} cards, more than any machine has")]
    TooMany(usize),
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    gpu: Option<Gpus>,
    /// Around the answer where it was asked for over HTTP, and not by `query`.
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    gpu: Option<Gpus>,
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
/// When it is no such answer, or lists more cards than there can be.
pub fn cards(answer: &[u8]) -> Result<Vec<Card>, Error> {
    let answer: Answer = serde_json::from_slice(answer).map_err(Error::Malformed)?;
    let gpus = answer.gpu.or(answer.metadata.and_then(|metadata| metadata.gpu));
    let cards = gpus.ok_or(Error::OfSomethingElse)?.cards.unwrap_or_default();
    if cards.len() > MOST_CARDS {
        return Err(Error::TooMany(cards.len()));
    }
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
        for (answer, said) in [
            ("", "it is no JSON"),
            ("gpu: {}", "it is no JSON"),
            (r#"{"gpu":{"cards":[{"vendor_id":4098}]}}"#, "it is no JSON"),
            ("{}", "it has no `gpu`"),
            (r#"{"metadata":{"cpu":{}}}"#, "it has no `gpu`"),
            (many.as_str(), "it lists 1025 cards"),
            (deep.as_str(), "it is no JSON"),
        ] {
            let error = cards(answer.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
