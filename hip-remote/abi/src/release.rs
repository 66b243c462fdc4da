//! The releases whose programs find a library here.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    Rocm5,
    Rocm6,
    /// ROCm 10 keeps its SONAME.
    Rocm7,
}

impl Release {
    pub const ALL: [Self; 3] = [Self::Rocm5, Self::Rocm6, Self::Rocm7];

    pub fn number(self) -> u32 {
        match self {
            Self::Rocm5 => 5,
            Self::Rocm6 => 6,
            Self::Rocm7 => 7,
        }
    }

    pub fn soname(self) -> String {
        format!("libamdhip64.so.{}", self.number())
    }
}
