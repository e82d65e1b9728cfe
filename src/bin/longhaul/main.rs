//! The command `longhaul`.
fn main() {}
