//! The compiler's hints about the commonest faults. Each case is a program that is compiled against the library of this
//! test, and whose errors are read: the sentences, and not the compiler's own words around them.
#![cfg(not(any(miri, pointsman_asan, pointsman_tsan)))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The begin of all cases: an actor that takes a request and a message.
const COMMON: &str = r#"
#![allow(unused)]
use pointsman::prelude::*;
use pointsman::routing::Random;
struct Get(String);
impl Request for Get { type Reply = Option<u64>; }
struct Clear;
struct Other;
enum Msg { Get(Call<Get>), Clear(Clear) }
impl From<Call<Get>> for Msg { fn from(call: Call<Get>) -> Self { Msg::Get(call) } }
impl From<Clear> for Msg { fn from(clear: Clear) -> Self { Msg::Clear(clear) } }
struct Cache;
impl Actor for Cache {
    type Message = Msg;
    fn receive(&mut self, _: Msg, _: &mut Context<Msg>) -> HandlerResult { Ok(()) }
}
fn main() {}
"#;

/// The library that this test was linked with: the newest beside it.
fn library(folder: &Path) -> PathBuf {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libpointsman-") && name.ends_with(".rlib")
    };
    let written = |path: &PathBuf| {
        fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(is_library).max_by_key(written).expect("the test has been linked with a library")
}

/// Compiles a program with this function in it; returns the compiler's errors, or `None` if there are none.
fn compile(name: &str, function: &str) -> Option<String> {
    let this = std::env::current_exe().unwrap();
    let folder = this.parent().unwrap();
    let scratch =
        std::env::temp_dir().join(format!("pointsman-compile-errors-{}-{name}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    let program = scratch.join("program.rs");
    fs::write(&program, format!("{COMMON}{function}")).unwrap();
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--emit", "metadata", "--color", "never", "--out-dir"])
        .arg(&scratch)
        .arg("-L")
        .arg(format!("dependency={}", folder.display()))
        .arg("--extern")
        .arg(format!("pointsman={}", library(folder).display()))
        .arg(&program)
        .output()
        .unwrap();
    fs::remove_dir_all(&scratch).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(errors)
}

/// The function without its fault compiles, and with it the errors have these sentences.
#[track_caller]
fn assert_said(name: &str, sound: &str, faulty: &str, sentences: &[&str]) {
    assert_eq!(compile(&format!("{name}-sound"), sound), None, "{sound}");
    let errors = compile(&format!("{name}-faulty"), faulty).expect("it has a fault");
    for sentence in sentences {
        assert!(errors.contains(sentence), "{sentence:?} is not in:\n{errors}");
    }
}

#[test]
fn a_message_without_its_variant() {
    assert_said(
        "tell",
        "fn f(cache: ActorRef<Msg>) { cache.tell(Clear); }",
        "fn f(cache: ActorRef<Msg>) { cache.tell(Other); }",
        &[
            "`Other` cannot be sent to an actor whose message is `Msg`",
            "no variant of `Msg` takes a `Other`",
            "add a variant that holds it and derive `Message`, or implement `From<Other>` for `Msg`",
        ],
    );
}

#[test]
fn a_request_without_its_variant() {
    assert_said(
        "ask",
        "fn f(cache: ActorRef<Msg>) { let _ = cache.ask(Get(String::new())); }",
        "struct Len; impl Request for Len { type Reply = usize; }
         fn f(cache: ActorRef<Msg>) { let _ = cache.ask(Len); }",
        &[
            "an actor whose message is `Msg` cannot be asked `Len`",
            "add a variant that holds a `Call<Len>` and derive `Message`, or implement `From<Call<Len>>` for `Msg`",
        ],
    );
}

#[test]
fn a_request_that_is_none() {
    assert_said(
        "request",
        "fn f(cache: ActorRef<Msg>) { let _ = cache.ask(Get(String::new())); }",
        "fn f(cache: ActorRef<Msg>) { let _ = cache.ask(Clear); }",
        &[
            "`Clear` is no request",
            "`impl Request for Clear { type Reply = …; }`",
            "a message without an answer is sent by `tell`",
        ],
    );
}

#[test]
fn a_logic_for_a_balancing_pool() {
    assert_said(
        "balancing",
        "fn f(system: &System) { let _ = system.router(\"a\").pool(2, |_| Cache).logic(Random::new()).spawn(); }",
        "fn f(system: &System) { let _ = system.router(\"a\").balancing_pool(2, |_| Cache).logic(Random::new()).spawn(); }",
        &["takes no other logic", "a balancing pool has a queue that its routees share, and no logic"],
    );
}

#[test]
fn a_text_as_an_error() {
    assert_said(
        "text",
        "fn f(text: Result<u32, String>) -> HandlerResult { text.map_err(Failure::msg)?; Ok(()) }",
        "fn f(text: Result<u32, String>) -> HandlerResult { text?; Ok(()) }",
        &["no error: a text becomes a failure by `.map_err(Failure::msg)?`"],
    );
}
