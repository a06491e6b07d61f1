//! Switches the mirrored engine to its shuttle seam.

fn main() {
    println!("cargo::rustc-cfg=pointsman_shuttle");
    println!("cargo::rerun-if-changed=build.rs");
}
