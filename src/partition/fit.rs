//! Whether a language model fits into one device: its weights and the cache of keys and values against the device's memory.

use std::num::NonZero;

use serde::{Deserialize, Serialize};

/// A number in a format, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    Fp32,
    Fp16,
    Bf16,
    Fp8,
    Int8,
    Int4,
}

/// A model, as far as its memory goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Model {
    /// How many weights it has.
    pub parameters: u64,
    /// How many numbers its cache has for each token; `None` where its layers are not known.
    pub cache_per_token: Option<u64>,
    /// The most tokens that it takes.
    #[serde(rename = "longest_context")]
    pub context: Option<u64>,
}

/// The memory that a model takes of a device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fit {
    pub weights_bytes: u64,
    /// `None`: it is not known, and not counted.
    pub cache_bytes: Option<u64>,
    /// What the program may take of the device: its memory times the utilization.
    pub usable_bytes: u64,
    pub fits: bool,
}

/// Keys of a model's config.json, as Hugging Face's transformers name them.
#[derive(Debug, Deserialize)]
struct Config {
    hidden_size: NonZero<u64>,
    num_hidden_layers: NonZero<u64>,
    num_attention_heads: NonZero<u64>,
    num_key_value_heads: Option<NonZero<u64>>,
    head_dim: Option<NonZero<u64>>,
    intermediate_size: u64,
    vocab_size: NonZero<u64>,
    #[serde(default)]
    tie_word_embeddings: bool,
    max_position_embeddings: Option<u64>,
    /// A mixture of experts has so many feed-forward parts a layer, which may be of another size. Families name the count
    /// differently.
    num_local_experts: Option<NonZero<u64>>,
    num_experts: Option<NonZero<u64>>,
    n_routed_experts: Option<NonZero<u64>>,
    moe_num_experts: Option<NonZero<u64>>,
    moe_intermediate_size: Option<NonZero<u64>>,
}

impl Precision {
    /// The bytes of so many numbers.
    #[must_use]
    pub fn bytes(self, count: u64) -> u64 {
        match self {
            Self::Fp32 => count.saturating_mul(4),
            Self::Fp16 | Self::Bf16 => count.saturating_mul(2),
            Self::Fp8 | Self::Int8 => count,
            Self::Int4 => count.div_ceil(2),
        }
    }

    /// vLLM's options for weights and a cache in this format. A model in integers was made so, and vLLM sees it.
    #[must_use]
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Fp32 => &["--dtype", "float32"],
            Self::Fp16 => &["--dtype", "float16"],
            Self::Bf16 => &["--dtype", "bfloat16"],
            Self::Fp8 => &["--quantization", "fp8", "--kv-cache-dtype", "fp8"],
            Self::Int8 | Self::Int4 => &[],
        }
    }

    /// The format of the cache: weights in integers have one of 16 bits.
    fn of_cache(self) -> Self {
        match self {
            Self::Int8 | Self::Int4 => Self::Fp16,
            other => other,
        }
    }
}

impl Model {
    /// Reads a model's config.json: a decoder with gated feed-forward parts, as Llama, Mistral, Qwen and their like.
    ///
    /// # Errors
    /// The text is no JSON object with the keys that the size follows from.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Config = serde_json::from_str(text)
            .map_err(|error| format!("no config.json of a language model: {error}"))?;
        let (hidden, heads) = (config.hidden_size.get(), config.num_attention_heads.get());
        let head = config.head_dim.map_or(hidden / heads, NonZero::get);
        let kept = config.num_key_value_heads.map_or(heads, NonZero::get).saturating_mul(head);
        let asked = hidden.saturating_mul(heads.saturating_mul(head));
        let attention = asked.saturating_add(hidden.saturating_mul(kept)).saturating_mul(2);
        let experts = config.num_local_experts.or(config.num_experts).or(config.n_routed_experts);
        let experts = experts.or(config.moe_num_experts).map_or(1, NonZero::get);
        if config.moe_intermediate_size.is_some() && experts == 1 {
            return Err(
                "a mixture of experts whose config.json does not say how many: give --parameters".to_owned()
            );
        }
        if head == 0 {
            return Err("num_attention_heads is more than hidden_size".to_owned());
        }
        let wide = config.moe_intermediate_size.map_or(config.intermediate_size, NonZero::get);
        let forward = hidden.saturating_mul(wide).saturating_mul(3).saturating_mul(experts);
        let layer = attention.saturating_add(forward).saturating_add(hidden.saturating_mul(2));
        let embeddings = if config.tie_word_embeddings { 1 } else { 2 };
        let words = config.vocab_size.get().saturating_mul(hidden).saturating_mul(embeddings);
        let layers = config.num_hidden_layers.get();
        Ok(Self {
            parameters: layer.saturating_mul(layers).saturating_add(words),
            cache_per_token: Some(layers.saturating_mul(kept).saturating_mul(2)),
            context: config.max_position_embeddings,
        })
    }

    /// A model of which only the number of weights is known: `8B`, `0.5B`, `350M`.
    ///
    /// # Errors
    /// The text is no such number.
    pub fn of_parameters(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no number of parameters: write 8B, 0.5B or 350M");
        let (number, unit) = match text.char_indices().last() {
            Some((at, 'B' | 'b')) => (text.get(..at), 1_000_000_000_u64),
            Some((at, 'M' | 'm')) => (text.get(..at), 1_000_000),
            _ => (None, 1),
        };
        let number = number.ok_or_else(wrong)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(part) || part.len() > 6 {
            return Err(wrong());
        }
        let digits = format!("{part:0<6}");
        let millionths = whole.parse::<u64>().ok().and_then(|it| it.checked_mul(1_000_000));
        let millionths = millionths.zip(digits.parse::<u64>().ok()).and_then(|(a, b)| a.checked_add(b));
        let parameters = millionths.and_then(|it| it.checked_mul(unit / 1_000_000)).filter(|it| *it > 0);
        Ok(Self { parameters: parameters.ok_or_else(wrong)?, cache_per_token: None, context: None })
    }

    /// Compares the model with a device. `utilization`: the hundredths of its memory that the program may take.
    #[must_use]
    pub fn fit(&self, memory_bytes: u64, precision: Precision, context: u64, utilization: u64) -> Fit {
        let weights_bytes = precision.bytes(self.parameters);
        let cache = |per_token: u64| precision.of_cache().bytes(per_token.saturating_mul(context));
        let cache_bytes = self.cache_per_token.map(cache);
        let usable_bytes = memory_bytes / 100 * utilization;
        Fit {
            weights_bytes,
            cache_bytes,
            usable_bytes,
            fits: weights_bytes.saturating_add(cache_bytes.unwrap_or_default()) <= usable_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of meta-llama/Llama-3.1-8B-Instruct: 8.03 billion parameters, by its model card.
    const LLAMA: &str = r#"{"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#;

    #[test]
    fn the_size_of_a_model_follows_from_its_config() {
        let model = Model::parse(LLAMA).unwrap();
        assert_eq!(model.parameters, 8_030_257_152);
        // AMD's guide: 2 × layers × hidden × bytes a token, here with eight heads of keys and values.
        assert_eq!(model.cache_per_token, Some(2 * 32 * 1024));
        for (from, to, problem) in [
            ("\"hidden_size\": 4096,", "", "missing field `hidden_size`"),
            ("32,", "0,", "expected a nonzero u64"),
            ("\"num_attention_heads\": 32", "\"num_attention_heads\": 9999", "is more than hidden_size"),
            ("{", "{\"moe_intermediate_size\": 1536, ", "give --parameters"),
        ] {
            let text = LLAMA.replace(from, to);
            assert!(Model::parse(&text).unwrap_err().contains(problem), "{text}");
        }
    }

    #[test]
    fn a_device_of_cpx_takes_a_model_of_seven_billion_and_not_one_of_thirteen() {
        const CPX: u64 = 24 << 30;
        for (parameters, precision, fits) in [
            ("7B", Precision::Fp16, true),
            ("13B", Precision::Fp16, false),
            ("13B", Precision::Fp8, true),
            ("70B", Precision::Int4, false),
            ("0.5B", Precision::Fp32, true),
        ] {
            let model = Model::of_parameters(parameters).unwrap();
            assert_eq!(model.fit(CPX, precision, 4096, 90).fits, fits, "{parameters} {precision:?}");
        }
        let model = Model::parse(LLAMA).unwrap();
        assert!(model.fit(CPX, Precision::Bf16, 4096, 90).fits);
        assert!(!model.fit(CPX, Precision::Bf16, 131_072, 90).fits, "the cache alone has 16 GiB");
    }

    #[test]
    fn a_number_of_parameters_has_a_unit() {
        for (text, parameters) in [
            ("8B", Some(8_000_000_000)),
            ("0.5b", Some(500_000_000)),
            ("350M", Some(350_000_000)),
            ("8", None),
            ("B", None),
            ("-8B", None),
            ("8.1234567B", None),
            ("0B", None),
            ("99999999999999999999B", None),
            ("", None),
        ] {
            assert_eq!(Model::of_parameters(text).ok().map(|model| model.parameters), parameters, "{text:?}");
        }
    }
}
