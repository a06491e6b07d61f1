//! TLS, and the permissions of the configuration that the crate ships.

use crate::doctor::{doctor, text};
use crate::support::{LIMIT, TestNode, bodies, numbers_at_the_end, outbox, server_or_skip};
use pointsman::remote::{Channel, ChannelKind};
use pointsman_nats::{DevServer, Nats};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An authority.
struct Authority(Issuer<'static, KeyPair>, String);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self(Issuer::new(params, key), pem)
    }

    /// Writes `NAME.pem` and `NAME.key`.
    fn sign(&self, folder: &Path, name: &str, hosts: &[&str], change: impl FnOnce(&mut CertificateParams)) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("a file");
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("a file");
    }
}

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

/// A folder with the certificates of a server and of three nodes. It is removed when it is dropped.
struct Folder(PathBuf, Authority);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("pointsman-nats-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let authority = Authority::new();
        fs::write(folder.join("ca.pem"), &authority.1).expect("a file");
        authority.sign(&folder, "server", &["localhost", "127.0.0.1"], |_| {});
        for node in ["n1", "n2", "n3"] {
            authority.sign(&folder, node, &[], |_| {});
        }
        Self(folder, authority)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A server with the configuration that the crate ships.
    fn server(&self) -> Option<DevServer> {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("nats-server.conf");
        server_or_skip(|| DevServer::start_with(config, &self.0))
    }

    /// The settings of a node with this certificate.
    fn nats(&self, server: &DevServer, certificate: &str) -> Nats {
        let (pem, key) = (self.path(&format!("{certificate}.pem")), self.path(&format!("{certificate}.key")));
        Nats::servers([format!("tls://{}", server.endpoint())]).ca(self.path("ca.pem")).certificate(pem, key)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn nodes_talk_over_tls_with_the_users_of_their_certificates() {
    let folder = Folder::new();
    let Some(server) = folder.server() else { return };
    let n1 = TestNode::connected(folder.nats(&server, "n1"), "n1", 1);
    let n2 = TestNode::connected(folder.nats(&server, "n2"), "n2", 2);
    let bodies = bodies(1000, 20_000);
    n1.fabric.wants_out(&outbox("n2", &bodies));
    n1.fabric.publish(Channel::Control("n2"), b"hello".to_vec()).unwrap();
    n1.fabric.publish(Channel::Heartbeat, b"beat".to_vec()).unwrap();
    n1.fabric.publish(Channel::Registry, b"names".to_vec()).unwrap();
    n1.fabric.publish(Channel::Probe { node: "n2", uid: 9 }, Vec::new()).unwrap();
    n1.fabric.publish(Channel::Probe { node: "n2", uid: 2 }, Vec::new()).unwrap();
    assert_eq!(n2.record.wait_frames(ChannelKind::Control, 1), [("n1".to_owned(), b"hello".to_vec())]);
    n2.record.wait_frames(ChannelKind::Heartbeat, 1);
    n2.record.wait_frames(ChannelKind::Registry, 1);
    let frames = n2.record.wait_frames(ChannelKind::Batch, bodies.len());
    assert!(frames.iter().zip(&bodies).all(|((from, frame), body)| from == "n1" && frame.ends_with(body)));
    n1.record.wait("an answer", |told| {
        told.iter().any(|told| format!("{told:?}") == "NoListener(\"n2\", 9)").then_some(())
    });
}

/// A node with the certificate of another one cannot hear what is for the name that it takes, and so it never connects.
#[test]
fn a_node_can_take_no_other_name() {
    let folder = Folder::new();
    let Some(server) = folder.server() else { return };
    let thief = TestNode::start(folder.nats(&server, "n3"), "n1", 1);
    let why = thief.record.wait_down(1);
    assert!(why.contains("does not let this node subscribe to `pointsman."), "{why}");
}

/// The server's own rule, without the engine: what a client with the certificate of n3 publishes as n1 reaches no node.
#[test]
fn a_client_cannot_publish_under_another_name() {
    let folder = Folder::new();
    let Some(server) = folder.server() else { return };
    let n2 = TestNode::connected(folder.nats(&server, "n2"), "n2", 2);
    let mut raw = raw_client(&folder, &server, "n3");
    let mut publish = |subject: &str| write!(raw, "PUB {subject} 1\r\nx\r\n").expect("it is connected");
    for subject in ["d.n2.n1", "c.n2.n1", "h.n1", "r.n1", "c.n2.n2"] {
        publish(&format!("pointsman.{subject}"));
    }
    publish("pointsman.h.n3");
    publish("pointsman.c.n2.n3");
    assert_eq!(n2.record.wait_frames(ChannelKind::Control, 1), [("n3".to_owned(), b"x".to_vec())]);
    assert_eq!(n2.record.wait_frames(ChannelKind::Heartbeat, 1), [("n3".to_owned(), b"x".to_vec())]);
    assert_eq!(n2.record.told().len(), 3, "{:?}", n2.record.told());
}

/// A connection with the certificate of a node, behind `CONNECT`.
fn raw_client(folder: &Folder, server: &DevServer, name: &str) -> impl Write {
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use std::io::{BufRead, BufReader};
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(folder.path("ca.pem")).expect("a certificate"))
        .expect("an authority");
    let chain =
        vec![CertificateDer::from_pem_file(folder.path(&format!("{name}.pem"))).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(folder.path(&format!("{name}.key"))).expect("a key");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .expect("a certificate with its key");
    let stream = std::net::TcpStream::connect(server.endpoint()).expect("it listens");
    let mut info = String::new();
    BufReader::new(stream.try_clone().expect("a clone")).read_line(&mut info).expect("an INFO");
    assert!(info.contains("\"tls_verify\":true"), "{info}");
    let host = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(std::sync::Arc::new(config), host).expect("a session");
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"CONNECT {\"verbose\":false,\"tls_required\":true}\r\n").expect("it is connected");
    stream
}

fn reason(nats: Nats) -> String {
    TestNode::start(nats, "n1", 1).record.wait_down(1)
}

#[test]
fn each_fault_of_a_certificate_is_told_apart() {
    let folder = Folder::new();
    let foreign = Authority::new();
    fs::write(folder.path("foreign-ca.pem"), &foreign.1).unwrap();
    folder.1.sign(&folder.0, "late", &[], expired);
    foreign.sign(&folder.0, "stranger", &[], |_| {});
    let Some(server) = folder.server() else { return };
    let url = format!("tls://{}", server.endpoint());

    let why = reason(Nats::servers([url.clone()]).ca(folder.path("ca.pem")));
    assert!(why.contains("demands a certificate of this node"), "{why}");
    let why = reason(folder.nats(&server, "late"));
    assert!(why.contains("the certificate of this node has expired"), "{why}");
    let why = reason(folder.nats(&server, "stranger"));
    assert!(why.contains("the certificate of this node is signed by another authority"), "{why}");
    let why = reason(folder.nats(&server, "n1").ca(folder.path("foreign-ca.pem")));
    assert!(why.contains("the certificate of the server is signed by another authority"), "{why}");
    let why = reason(Nats::servers([format!("nats://{}", server.endpoint())]));
    assert!(why.contains("the server demands TLS"), "{why}");
}

#[test]
fn a_server_with_an_expired_certificate_or_one_for_another_name_is_not_talked_to() {
    let folder = Folder::new();
    folder.1.sign(&folder.0, "server", &["elsewhere.example"], |_| {});
    let Some(server) = folder.server() else { return };
    let why = reason(folder.nats(&server, "n1"));
    assert!(why.contains("the certificate of the server is not for `127.0.0.1`"), "{why}");
    drop(server);
    folder.1.sign(&folder.0, "server", &["127.0.0.1"], expired);
    let Some(server) = folder.server() else { return };
    let why = reason(folder.nats(&server, "n1"));
    assert!(why.contains("the certificate of the server has expired"), "{why}");
}

#[test]
fn a_renewed_certificate_is_read_again() {
    let folder = Folder::new();
    folder.1.sign(&folder.0, "n1", &[], expired);
    let Some(server) = folder.server() else { return };
    let node = TestNode::start(folder.nats(&server, "n1"), "n1", 1);
    node.record.wait_down(1);
    folder.1.sign(&folder.0, "n1", &[], |_| {});
    node.record.wait_up(1);
}

#[test]
fn a_server_that_offers_no_tls_gets_no_byte() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tls://{}", listener.local_addr().unwrap());
    let nats = Nats::servers([url]).ca(folder.path("ca.pem"));
    let node = TestNode::start(nats, "n1", 1);
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"INFO {\"max_payload\":1000,\"headers\":true}\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    assert_eq!(rest, b"");
    let why = node.record.wait_down(1);
    assert!(why.contains("does not offer it: nothing was sent"), "{why}");
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = Folder::new();
    fs::write(folder.path("empty"), "").unwrap();
    let base = || Nats::servers(["tls://127.0.0.1:1"]);
    let error = |nats: Nats| TestNode::try_start(nats, "n1", 1).map(drop).expect_err("a file").to_string();
    let said = error(base().ca(folder.path("nowhere")));
    assert!(said.contains("`ca`") && said.contains("nowhere"), "{said}");
    let said = error(base().ca(folder.path("empty")));
    assert!(said.contains("no certificate in the form of PEM"), "{said}");
    let said =
        error(base().ca(folder.path("ca.pem")).certificate(folder.path("n1.pem"), folder.path("n1.pem")));
    assert!(said.contains("`key`") && said.contains("n1.pem"), "{said}");
    let said =
        error(base().ca(folder.path("ca.pem")).certificate(folder.path("n1.pem"), folder.path("n2.key")));
    assert!(said.contains("`key`") && said.contains("n2.key"), "{said}");
    let said = error(base());
    assert!(said.contains("`ca` is not set"), "{said}");
}

#[test]
fn the_doctor_says_what_a_certificate_allows() {
    let folder = Folder::new();
    let Some(server) = folder.server() else { return };
    let url = format!("tls://{}", server.endpoint());
    let path = |name: &str| folder.path(name).to_str().expect("UTF-8").to_owned();
    let (ca, pem, key) = (path("ca.pem"), path("n1.pem"), path("n1.key"));
    let call =
        |node: &str| doctor(&[&url, "--ca", &ca, "--certificate", &pem, "--key", &key, "--node", node]);
    let output = call("n1");
    let said = text(&output);
    assert!(output.status.success() && said.contains("TLS, after") && said.contains(" MB/s"), "{said}");
    assert!(said.contains("publish      pointsman.h.n1: allowed\n"), "{said}");
    assert!(said.contains("publish      pointsman.h.pointsman-doctor: refused, as it should be"), "{said}");
    let output = call("n2");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("publish      pointsman.h.n2: REFUSED, and the node needs it"), "{said}");
    assert!(said.contains("round trip   not measured"), "{said}");
}

/// The server is killed while records of TLS are under way. Batches keep their order, and none comes twice.
#[test]
fn a_server_that_is_killed_under_tls_costs_no_order() {
    let folder = Folder::new();
    let Some(mut server) = folder.server() else { return };
    let n1 = TestNode::connected(folder.nats(&server, "n1"), "n1", 1);
    let n2 = TestNode::connected(folder.nats(&server, "n2"), "n2", 2);
    n1.fabric.wants_out(&outbox("n2", &bodies(3000, 10_000)));
    n2.record.wait_frames(ChannelKind::Batch, 50);
    server.kill().unwrap();
    n1.record.wait_down(1);
    n2.record.wait_down(1);
    server.restart().unwrap();
    n1.record.wait_up(2);
    n2.record.wait_up(2);
    let found = numbers_at_the_end(n1, folder.nats(&server, "n1"), &n2);
    assert!(!found.is_empty() && found.windows(2).all(|pair| pair[0] < pair[1]));
}
