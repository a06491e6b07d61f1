//! The inputs that the fuzzer has kept, handed to the functions that it tests: see fuzz/README.md.

use std::path::Path;

// The parsers of the examples name each other by `crate::`; their own tests run here, too.
#[allow(dead_code)] // here and below: the targets need a part of each module
#[path = "../examples/logmill/calendar.rs"]
mod calendar;
#[allow(dead_code)] // as above
#[path = "../pointsman-nats/src/codec.rs"]
mod codec;
#[allow(dead_code)] // as above
#[path = "../examples/logmill/framing.rs"]
mod framing;
#[allow(dead_code)] // as above
#[path = "../examples/logmill/record.rs"]
mod record;
#[cfg(feature = "console")]
#[allow(dead_code)] // as above
#[path = "../src/console/request.rs"]
mod request;
#[allow(dead_code)] // as above
#[path = "../examples/shardcache/resp.rs"]
mod resp;
#[path = "../examples/logmill/rfc3164.rs"]
mod rfc3164;
#[allow(dead_code)] // as above
#[path = "../examples/logmill/rfc5424.rs"]
mod rfc5424;

macro_rules! targets {
    ($($(#[$meta:meta])? $name:ident = $module:ident $path:literal)*) => {
        $(
            $(#[$meta])?
            #[path = $path]
            mod $module;
        )*

        mod corpus {
            $(
                $(#[$meta])?
                #[test]
                fn $name() {
                    super::replay(stringify!($name), super::$module::check);
                }
            )*
        }
    };
}

targets! {
    #[cfg(feature = "remote")]
    association = association_target "../fuzz/targets/association.rs"
    #[cfg(feature = "remote")]
    batch = batch_target "../fuzz/targets/batch.rs"
    #[cfg(feature = "remote")]
    body = body_target "../fuzz/targets/body.rs"
    config = config_target "../fuzz/targets/config.rs"
    #[cfg(feature = "remote")]
    control = control_target "../fuzz/targets/control.rs"
    #[cfg(feature = "net")]
    frames = frames_target "../fuzz/targets/frames.rs"
    framing = framing_target "../fuzz/targets/framing.rs"
    nats_codec = nats_codec_target "../fuzz/targets/nats_codec.rs"
    path = path_target "../fuzz/targets/path.rs"
    #[cfg(feature = "remote")]
    policy = policy_target "../fuzz/targets/policy.rs"
    #[cfg(feature = "remote")]
    ports = ports_target "../fuzz/targets/ports.rs"
    #[cfg(feature = "console")]
    request = request_target "../fuzz/targets/request.rs"
    resp = resp_target "../fuzz/targets/resp.rs"
    router = router_target "../fuzz/targets/router.rs"
    syslog = syslog_target "../fuzz/targets/syslog.rs"
}

/// Hands every input of a target's corpus to it; a failure names the file.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    assert!(files.len() >= 20, "{} holds only {} inputs", folder.display(), files.len());
    for file in files {
        let input = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Err(panic) = std::panic::catch_unwind(|| check(&input)) {
            eprintln!("with the input {}", file.display());
            std::panic::resume_unwind(panic);
        }
    }
}
