//! What LXD and Incus answer to `query /1.0/resources`, as far as it is about GPUs.
//!
//! `shared/api/resource.go` of both projects defines the fields. Others are passed over, and what is absent stays
//! absent: an empty text is how Go's encoder writes a text that is not there.

use anyhow::Context as _;
use serde::{Deserialize, Deserializer};

/// The longest answer that is read. A server of 512 threads has about 2 MB, most of it flags of its CPUs.
pub const LIMIT: usize = 16 << 20;

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
}

/// The nodes of a card.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Drm {
    #[serde(default, deserialize_with = "text")]
    pub card_name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub render_name: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    gpu: Gpus,
}

#[derive(Deserialize)]
struct Gpus {
    /// Go writes a list of none as null.
    cards: Option<Vec<Card>>,
}

/// The cards of an answer.
///
/// # Errors
/// When the text is no answer of `resources`.
pub fn cards(answer: &[u8]) -> anyhow::Result<Vec<Card>> {
    let answer: Answer =
        serde_json::from_slice(answer).context("it is no answer to `lxc query /1.0/resources`")?;
    Ok(answer.gpu.cards.unwrap_or_default())
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
        assert_eq!((bare.driver, bare.drm, bare.pci_address), (None, None, None));
        let drm = Drm { card_name: None, render_name: Some("renderD128".to_owned()) };
        assert_eq!(driven.drm, Some(drm));
        assert_eq!(cards(br#"{"gpu":{"cards":null,"total":0}}"#).unwrap(), []);
        let deep = format!(r#"{{"gpu":{}"#, "[".repeat(100_000));
        for answer in ["", "gpu: {}", r#"{"gpu":{"cards":[{"vendor_id":4098}]}}"#, "{}", &deep] {
            assert!(cards(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
