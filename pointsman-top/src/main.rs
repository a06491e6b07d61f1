//! The program `pointsman-top`.

fn main() {}
