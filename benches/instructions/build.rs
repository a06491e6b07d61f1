//! Builds the request to valgrind, which is a macro of its own header.

fn main() {
    println!("cargo::rerun-if-changed=src/toggle.c");
    cc::Build::new().file("src/toggle.c").compile("toggle");
}
