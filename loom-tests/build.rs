//! Copies the engine's source for the mirror, switched to its loom seam.
//!
//! The models look at internals. In the copy, and only there, what is visible in the whole crate is public: so the source
//! itself says `pub` only of what users see, and the compiler checks that.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    println!("cargo::rustc-cfg=pointsman_loom");
    println!("cargo::rustc-cfg=pointsman_mirror");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../src");
    let source = Path::new("../src");
    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("engine");
    let _ = fs::remove_dir_all(&copy);
    copy_folder(source, &copy).expect("the source can be read, and the copy written");
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = widened(&fs::read_to_string(&path)?);
            let is_root = path.ends_with("src/lib.rs");
            fs::write(target, if is_root { without_head(&text) } else { text })?;
        } else {
            fs::copy(&path, target)?;
        }
    }
    Ok(())
}

/// What is visible in the crate is public; but for imports of macros, which cannot be.
fn widened(text: &str) -> String {
    let widen = |line: &str| match line.trim_start().starts_with("pub(crate) use ") {
        true => line.to_owned(),
        false => line.replace("pub(crate)", "pub"),
    };
    text.lines().map(|line| widen(line) + "\n").collect()
}

/// An included file has neither documentation nor attributes of its own.
fn without_head(text: &str) -> String {
    let begin = text.find("extern crate self as pointsman;").expect("the root begins with it");
    text[begin..].to_owned()
}
