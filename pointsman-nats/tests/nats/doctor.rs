//! The program `pointsman-doctor`, as it is called.

use crate::support::server_or_skip;
use pointsman_nats::{DevServer, Nats};
use std::process::{Command, Output};

pub fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pointsman-doctor")).args(arguments).output().expect("it runs")
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_server_that_can_be_used_is_measured() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let output = doctor(&[&server.url()]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for expected in ["usable\n", "2.", "plain text, after", "up to 1048576 bytes", "round trip   ", " MB/s"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // The server has no users, so each may do all.
    assert!(said.contains("pointsman.h.pointsman-doctor: allowed: nodes are not kept apart"), "{said}");
    let found = Nats::servers([server.url()]).diagnose("pointsman", "n1").unwrap();
    let report = found[0].outcome.as_ref().unwrap();
    assert!(report.has_headers && report.permissions.iter().all(|permission| permission.is_allowed));
    let (median, longest) = report.round_trip.expect("it may be measured");
    assert!(median <= longest && report.throughput.expect("it may be measured").bytes > 0);
}

#[test]
fn servers_that_cannot_be_used_are_told_with_the_reason() {
    let output = doctor(&["nats://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("nats://127.0.0.1:1: NOT USABLE: the connection failed"),
        "{}",
        text(&output)
    );
    for (arguments, expected) in [
        (&["--nodes", "x"][..], "unknown option --nodes"),
        (&["--ca"], "--ca needs a value"),
        (&["nats://10.0.0.1"], "plain text"),
        (&["--node", "a b"], "`a b` of the node"),
        (&["--config", "nowhere.toml"], "nowhere.toml"),
        (&["--key", "k"], "--certificate and --key belong together"),
    ] {
        let output = doctor(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
    assert!(doctor(&["--help"]).status.success());
}

#[test]
fn a_file_of_settings_names_the_servers_the_node_and_the_cluster() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let path = std::env::temp_dir().join(format!("pointsman-doctor-{}.toml", std::process::id()));
    let config = |more: &str| {
        let text = format!(
            "[remote]\nnode = 'n7'\ncluster = 'shop'\n[remote.nats]\nservers = ['{}']\n{more}",
            server.url()
        );
        std::fs::write(&path, text).expect("a file");
        doctor(&["--config", path.to_str().expect("UTF-8")])
    };
    let said = text(&config(""));
    assert!(
        said.starts_with("node n7 of the cluster shop\n") && said.contains("shop.h.n7: allowed"),
        "{said}"
    );
    let output = config("inscure = true");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("[remote.nats] unknown key `inscure`"), "{}", text(&output));
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn no_password_of_an_address_is_shown() {
    let path = std::env::temp_dir().join(format!("pointsman-doctor-login-{}.toml", std::process::id()));
    let said = |arguments: &[&str]| text(&doctor(arguments));
    let mut texts = vec![
        said(&["nats://u:pw@127.0.0.1:1"]),
        said(&["nats://u:pw@10.0.0.1"]),
        said(&["http://u:pw@localhost"]),
        said(&["u:pw@localhost"]),
    ];
    for servers in ["['nats://u:pw@127.0.0.1:1']", "'nats://u:pw@127.0.0.1:1'", "['nats://u:pw@127.0.0.1:1'"]
    {
        std::fs::write(&path, format!("[remote.nats]\nservers = {servers}")).expect("a file");
        texts.push(said(&["--config", path.to_str().expect("UTF-8")]));
    }
    std::fs::remove_file(&path).expect("it is there");
    for text in texts {
        assert!(!text.contains("pw") && (text.contains("127.0.0.1:1") || text.contains("…@")), "{text}");
    }
}

#[test]
fn the_report_of_a_server_shows_no_password() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let url = server.url().replace("nats://", "nats://u:pw@");
    // The server has no users, and takes any.
    let said = text(&doctor(&[&url]));
    assert!(said.contains("usable\n") && said.contains(&server.endpoint()) && !said.contains("pw"), "{said}");
}
