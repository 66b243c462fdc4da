//! Who may have which GPU.
