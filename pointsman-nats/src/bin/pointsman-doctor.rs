//! Says which NATS servers a node can reach, how fast they are, and with what permissions. `--help` shows the arguments.

use pointsman_nats::{Nats, SettingsError};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
pointsman-doctor [OPTIONS] [SERVER...]

Looks at each NATS server as a node sees it: whether it can be reached, how fast it is, and what the node may do there.

  SERVER              nats://HOST:PORT or tls://HOST:PORT; nats://127.0.0.1:4222 if there is none
  --config FILE       reads `[remote]` and `[remote.nats]` of a file of settings; arguments go before them
  --node NAME         the name of the node (n1)
  --cluster NAME      the name of the cluster (pointsman)
  --ca FILE           the authority that signs the certificates of the servers
  --certificate FILE  the certificate of the node
  --key FILE          and its key
  --insecure          allows plain text to other machines

Returns 0 if all servers can be used, 1 if one cannot, 2 if the arguments are wrong.
";

/// The arguments of the command line.
#[derive(Default)]
struct Arguments {
    servers: Vec<String>,
    config: Option<PathBuf>,
    node: Option<String>,
    cluster: Option<String>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    insecure: bool,
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments::default();
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--config" => arguments.config = Some(value()?.into()),
            "--node" => arguments.node = Some(value()?),
            "--cluster" => arguments.cluster = Some(value()?),
            "--ca" => arguments.ca = Some(value()?.into()),
            "--certificate" => arguments.certificate = Some(value()?.into()),
            "--key" => arguments.key = Some(value()?.into()),
            "--insecure" => arguments.insecure = true,
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            _ => arguments.servers.push(argument),
        }
    }
    Ok(Some(arguments))
}

/// The settings of a file: the servers, and the names of the node and the cluster.
struct FileSettings {
    nats: Nats,
    node: Option<String>,
    cluster: Option<String>,
}

fn of_file(path: &Path) -> Result<FileSettings, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // Its errors show no password, as those of TOML would.
    let nats = Nats::of_config(&text).map_err(|error| match &error {
        SettingsError::Syntax { .. } | SettingsError::NoSection => format!("{}: {error}", path.display()),
        _ => format!("{}: [remote.nats] {error}", path.display()),
    })?;
    let file: toml::Table = text.parse().unwrap_or_default();
    let remote = file.get("remote").and_then(toml::Value::as_table);
    let text = |key: &str| remote.and_then(|remote| remote.get(key)?.as_str().map(str::to_owned));
    Ok(FileSettings { nats, node: text("node"), cluster: text("cluster") })
}

fn run(arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let FileSettings { mut nats, node, cluster } = match &arguments.config {
        Some(path) => of_file(path)?,
        None => {
            let nats = Nats::servers(["nats://127.0.0.1:4222"]);
            FileSettings { nats, node: None, cluster: None }
        }
    };
    if !arguments.servers.is_empty() {
        nats = nats.with_servers(arguments.servers);
    }
    if let Some(ca) = arguments.ca {
        nats = nats.ca(ca);
    }
    match (arguments.certificate, arguments.key) {
        (Some(certificate), Some(key)) => nats = nats.certificate(certificate, key),
        (None, None) => {}
        _ => return Err("--certificate and --key belong together".into()),
    }
    if arguments.insecure {
        nats = nats.insecure(true);
    }
    let (node, cluster) = (arguments.node.or(node), arguments.cluster.or(cluster));
    let (node, cluster) = (node.as_deref().unwrap_or("n1"), cluster.as_deref().unwrap_or("pointsman"));
    println!("node {node} of the cluster {cluster}");
    let found = nats.diagnose(cluster, node)?;
    for diagnosis in &found {
        println!("{diagnosis}");
    }
    Ok(found.iter().all(pointsman_nats::Diagnosis::is_usable))
}

fn main() -> ExitCode {
    match arguments(std::env::args().skip(1)) {
        Ok(None) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("pointsman-doctor: {error}\n\n{HELP}");
            ExitCode::from(2)
        }
        Ok(Some(arguments)) => match run(arguments) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("pointsman-doctor: {error}");
                ExitCode::from(2)
            }
        },
    }
}
