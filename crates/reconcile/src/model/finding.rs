use serde::Serialize;

use super::Resource;

/// Something about a resource that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub path: Resource,
    pub text: String,
}
