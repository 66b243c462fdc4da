//! The page at `/`, as a browser meets it.

mod answers;
mod chromium;
mod machine;
