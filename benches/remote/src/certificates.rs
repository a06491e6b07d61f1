//! The certificates of a server and of two nodes, for tells over TLS.

use pointsman_nats::{DevServer, Nats};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with certificates and keys. It is removed when it is dropped.
pub struct Certificates(PathBuf);

impl Certificates {
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("pointsman-benches-remote-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let made = Self(folder);
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority of a benchmark");
        let key = KeyPair::generate()?;
        fs::write(made.path("ca.pem"), params.self_signed(&key)?.pem())?;
        let authority = Issuer::new(params, key);
        for (name, hosts) in
            [("server", vec!["localhost".to_owned(), "127.0.0.1".to_owned()]), ("n1", vec![]), ("n2", vec![])]
        {
            let mut params = CertificateParams::new(hosts)?;
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate()?;
            fs::write(made.path(&format!("{name}.pem")), params.signed_by(&key, &authority)?.pem())?;
            fs::write(made.path(&format!("{name}.key")), key.serialize_pem())?;
        }
        Ok(made)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A server with the configuration that `pointsman-nats` ships: TLS, and the certificates of the nodes.
    pub fn server(&self) -> Result<DevServer, Box<dyn Error>> {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pointsman-nats/nats-server.conf");
        Ok(DevServer::start_with(config, &self.0)?)
    }

    /// The settings of the node of this name.
    pub fn nats(&self, server: &DevServer, node: &str) -> Nats {
        let (pem, key) = (self.path(&format!("{node}.pem")), self.path(&format!("{node}.key")));
        Nats::servers([format!("tls://{}", server.endpoint())]).ca(self.path("ca.pem")).certificate(pem, key)
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
