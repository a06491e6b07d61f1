//! Switches the mirrored engine to its loom seam.

fn main() {
    println!("cargo::rustc-cfg=pointsman_loom");
    println!("cargo::rerun-if-changed=build.rs");
}
