//! The settings of a node, as a file has them in its section `[remote]`.
//!
//! A key that is absent has the value that the code gives, or the default. Names are checked where they are read, so that an
//! error names the key; the rest by [`RemoteSettings::check`].

use crate::path::address::is_node_name;
use crate::remote::association::{AssociationSettings, LANES_MAX};
use crate::remote::control_message::ROLES_MAX;
use crate::remote::detector::{DetectorError, DetectorSettings, check_down_after};
use crate::remote::limits::Limits;
use crate::remote::on_quarantine::OnQuarantine;
use crate::remote::policy::{Policy, is_role};
use std::fmt;
use std::time::Duration;

/// The settings of a node.
#[derive(Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct RemoteSettings {
    /// The name of the node.
    #[serde(with = "node_name")]
    pub(crate) node: Option<String>,
    #[serde(with = "node_name")]
    pub(crate) cluster: Option<String>,
    #[serde(deserialize_with = "roles")]
    pub(crate) roles: Option<Vec<String>>,
    /// The lanes for each peer.
    #[serde(with = "crate::util::values::Whole::<u8, 1, { LANES_MAX as u64 }>")]
    pub(crate) lanes: Option<u8>,
    pub(crate) on_quarantine: Option<OnQuarantine>,
    #[serde(
        deserialize_with = "crate::util::values::section",
        skip_serializing_if = "crate::util::values::is_default"
    )]
    pub(crate) detector: DetectorKeys,
    #[serde(
        deserialize_with = "crate::util::values::section",
        skip_serializing_if = "crate::util::values::is_default"
    )]
    pub(crate) limits: Limits,
    #[serde(
        deserialize_with = "crate::util::values::section",
        skip_serializing_if = "crate::util::values::is_default"
    )]
    pub(crate) policy: Policy,
    /// The settings of the engine on NATS, which alone knows their keys.
    #[serde(skip_serializing_if = "crate::util::values::is_default")]
    pub(crate) nats: toml::Table,
}

impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.clone();
        hide_logins(&mut shown.nats);
        f.write_str(&toml::to_string(&shown).map_err(|_| fmt::Error)?)
    }
}

/// Replaces the logins in the addresses of servers, which may have passwords, by `…`. Returns whether there was one.
pub(crate) fn hide_logins(nats: &mut toml::Table) -> bool {
    /// `is_address` holds for the texts below `servers`.
    fn hide(value: &mut toml::Value, is_address: bool) -> bool {
        match value {
            toml::Value::String(text) => {
                let Some(end) = text.rfind('@') else { return false };
                let scheme = text.find("://").map(|at| at + "://".len()).filter(|at| *at <= end);
                if scheme.is_none() && !is_address {
                    return false;
                }
                text.replace_range(scheme.unwrap_or(0)..end, "…");
                true
            }
            // Each of them, so no `any`.
            toml::Value::Array(list) => {
                list.iter_mut().fold(false, |found, value| hide(value, is_address) | found)
            }
            toml::Value::Table(table) => {
                table.iter_mut().fold(false, |found, (_, value)| hide(value, is_address) | found)
            }
            _ => false,
        }
    }
    nats.iter_mut().fold(false, |found, (key, value)| hide(value, key == "servers") | found)
}

/// The settings of the failure detector that were given.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct DetectorKeys {
    #[serde(with = "crate::util::values::Span")]
    pub(crate) heartbeat: Option<Duration>,
    #[serde(with = "crate::util::values::Span")]
    pub(crate) acceptable_pause: Option<Duration>,
    pub(crate) threshold: Option<f64>,
    #[serde(with = "crate::util::values::Span")]
    pub(crate) down_after: Option<Duration>,
}

impl DetectorKeys {
    /// The keys of these settings, as far as they are not the defaults.
    pub(crate) fn of(settings: &AssociationSettings) -> Self {
        let AssociationSettings { detector, down_after } = *settings;
        let defaults = AssociationSettings::default();
        let other = |time: Duration, default: Duration| (time != default).then_some(time);
        Self {
            heartbeat: other(detector.heartbeat, defaults.detector.heartbeat),
            acceptable_pause: other(detector.acceptable_pause, defaults.detector.acceptable_pause),
            threshold: (detector.threshold != defaults.detector.threshold).then_some(detector.threshold),
            down_after: other(down_after, defaults.down_after),
        }
    }

    /// The settings that these keys make of others.
    pub(crate) fn settings(&self, others: AssociationSettings) -> AssociationSettings {
        let detector = DetectorSettings {
            heartbeat: self.heartbeat.unwrap_or(others.detector.heartbeat),
            acceptable_pause: self.acceptable_pause.unwrap_or(others.detector.acceptable_pause),
            threshold: self.threshold.unwrap_or(others.detector.threshold),
            ..others.detector
        };
        AssociationSettings { detector, down_after: self.down_after.unwrap_or(others.down_after) }
    }

    fn check_values(&self) -> Result<(), (&'static str, String)> {
        let fault = |error: DetectorError| {
            (error.key(), format!("it is {}: must be {}", error.value(), error.bounds()))
        };
        self.settings(AssociationSettings::default()).detector.check().map_err(fault)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_values()?;
        let AssociationSettings { detector, down_after } = self.settings(AssociationSettings::default());
        check_down_after(down_after, detector.heartbeat).map_err(|error| {
            let key = if self.down_after.is_some() { "down-after" } else { "heartbeat" };
            (key, format!("down-after is {}: must be {}", error.value(), error.bounds()))
        })
    }
}

impl RemoteSettings {
    /// Returns the first key whose value is wrong by itself, and what is wrong with it.
    pub(crate) fn check_values(&self) -> Result<(), (String, String)> {
        self.detector.check_values().map_err(|(key, fault)| (format!("detector.{key}"), fault))?;
        self.limits.check_values().map_err(|error| (format!("limits.{}", error.key()), error.to_string()))
    }

    /// Returns the first key with a wrong value, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        self.detector.check().map_err(|(key, fault)| (format!("detector.{key}"), fault))?;
        self.limits.check().map_err(|error| (format!("limits.{}", error.key()), error.to_string()))?;
        self.policy.check().map_err(|error| ("policy".to_owned(), error.to_string()))?;
        if let Some(node) = self.node.as_ref().filter(|node| !is_node_name(node)) {
            return Err(("node".to_owned(), format!("it is {node:?}: must be {NODE_NAME}")));
        }
        if let Some(cluster) = self.cluster.as_ref().filter(|cluster| !is_node_name(cluster)) {
            return Err(("cluster".to_owned(), format!("it is {cluster:?}: must be {NODE_NAME}")));
        }
        if let Some(role) = self.roles.iter().flatten().find(|role| !is_role(role)) {
            return Err(("roles".to_owned(), format!("one is {role:?}: must be {ROLE_NAME}")));
        }
        if let Some(count) = self.roles.as_ref().map(Vec::len).filter(|count| *count > ROLES_MAX) {
            return Err(("roles".to_owned(), format!("there are {count}: must be at most {ROLES_MAX}")));
        }
        match self.lanes {
            Some(lanes) if !(1..=LANES_MAX).contains(&lanes) => {
                let fault = format!("it is {lanes}: must be a whole number from 1 to {LANES_MAX}");
                Err(("lanes".to_owned(), fault))
            }
            _ => Ok(()),
        }
    }
}

/// The names that a node or a cluster can have.
const NODE_NAME: &str = "1 to 64 ASCII letters, digits, '_' and '-', of which the first is a letter or digit";

/// The names that a role can have.
const ROLE_NAME: &str =
    "1 to 64 ASCII letters, digits, '.', '_', ':' and '-', of which the first is a letter or digit";

mod node_name {
    use super::*;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
        name.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        let name = String::deserialize(from)?;
        match is_node_name(&name) {
            true => Ok(Some(name)),
            false => Err(serde::de::Error::custom(format!("it is {name:?}: must be {NODE_NAME}"))),
        }
    }
}

fn roles<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    struct Role(String);
    impl<'de> serde::Deserialize<'de> for Role {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let name = String::deserialize(from)?;
            match is_role(&name) {
                true => Ok(Role(name)),
                false => Err(serde::de::Error::custom(format!("it is {name:?}: must be {ROLE_NAME}"))),
            }
        }
    }
    let roles: Vec<Role> = serde::Deserialize::deserialize(from)?;
    Ok(Some(roles.into_iter().map(|Role(name)| name).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::apply as config;
    use crate::config::apply::apply;
    use crate::remote::engine::{Engine, EngineError, Fabric, Identity, Inbound};
    use crate::remote::in_process::InProcess;
    use crate::remote::node::Node;
    use crate::remote::policy::{Incoming, NotAllowed};
    use crate::settings::build_error::BuildError;
    use crate::system::System;
    use crate::system_settings::SystemSettings;
    use std::num::NonZeroU8;
    use std::sync::{Arc, Mutex};

    const ALL: &str = r#"
        [remote]
        node = "n1"
        cluster = "shop"
        roles = ["backend", "region:eu"]
        lanes = 2
        on-quarantine = "stop"
        [remote.nats]
        servers = ["tls://10.0.0.1:4222"]
        [remote.nats.deeper]
        insecure = false
        [remote.detector]
        heartbeat = "2s"
        acceptable-pause = "5s"
        threshold = 12.5
        down-after = "20s"
        [remote.limits]
        envelope = 1024
        large-message = 20000
        batch = 4096
        link-queue = 100000
        receive-window = 100001
        receive-total = 1000000
        pending-asks = 7
        associations = 8
        watches-per-peer = 10
        scratch = 0
        depth = 32
        [remote.policy]
        default = "closed"
        strict-paths = true
        paths = ["/user/orders", "/user/public/*"]
        deploy = { "demo.Worker" = ["n1", "role:frontend"] }
        [[remote.policy.rule]]
        peers = "role:operator"
        default = "open"
        [[remote.policy.rule]]
        peers = "n7"
        paths = ["/user/orders"]
    "#;

    /// The settings of a node of which the code says nothing.
    fn read(toml: &str) -> Result<RemoteSettings, BuildError> {
        let settings = apply(config::read(toml)?, SystemSettings::new("shop"))?;
        config::remote(&RemoteSettings::default(), &settings.remote)
    }

    #[test]
    fn logins_of_servers_are_not_shown() {
        let mut nats: toml::Table = r#"
            servers = ["nats://u:p@w@h:1", "tls://h", "u:pw@h", "nats://pw@h", 7]
            ca = "/etc/me@here/ca.pem"
            insecure = false
            [deeper]
            other = ["nats://u:pw://x@h"]
        "#
        .parse()
        .expect("it is TOML");
        let settings = RemoteSettings { nats: nats.clone(), ..RemoteSettings::default() };
        assert!(hide_logins(&mut nats));
        let texts = |value: &toml::Value| value.as_array().cloned().unwrap_or_default();
        let expected = ["nats://…@h:1", "tls://h", "…@h", "nats://…@h"].map(toml::Value::from);
        assert_eq!(texts(&nats["servers"])[..4], expected);
        assert_eq!(nats["ca"].as_str(), Some("/etc/me@here/ca.pem"));
        assert_eq!(texts(&nats["deeper"]["other"]), ["nats://…@h".into()]);
        assert!(!format!("{settings:?}").contains("pw") && format!("{settings:?}").contains("nats://…@h:1"));
        let mut without = "servers = ['nats://h:1']\nca = 'a@b'".parse().expect("it is TOML");
        assert!(!hide_logins(&mut without));
        assert_eq!(without["servers"][0].as_str(), Some("nats://h:1"));
    }

    #[test]
    fn each_key_has_its_effect() {
        let settings = read(ALL).unwrap();
        let names = settings.roles.iter().flatten().map(String::as_str).collect::<Vec<_>>();
        assert_eq!((settings.node.as_deref(), settings.cluster.as_deref()), (Some("n1"), Some("shop")));
        assert_eq!((names, settings.lanes), (vec!["backend", "region:eu"], Some(2)));
        assert_eq!(settings.on_quarantine, Some(OnQuarantine::Stop));
        assert_eq!(settings.nats["deeper"]["insecure"], toml::Value::Boolean(false));
        let AssociationSettings { detector, down_after } =
            settings.detector.settings(AssociationSettings::default());
        assert_eq!(
            (detector.heartbeat, detector.acceptable_pause),
            (Duration::from_secs(2), Duration::from_secs(5))
        );
        assert_eq!((detector.threshold, down_after), (12.5, Duration::from_secs(20)));
        let limits = Limits::new()
            .envelope(1024)
            .large_message(20_000)
            .batch(4096)
            .link_queue(100_000)
            .receive_window(100_001)
            .receive_total(1_000_000)
            .pending_asks(7)
            .associations(8)
            .watches_per_peer(10)
            .scratch(0)
            .depth(32);
        assert_eq!(settings.limits, limits);
        let policy = Policy::closed()
            .strict_paths()
            .allow_path("/user/orders")
            .allow_path("/user/public/*")
            .allow_factory("demo.Worker", ["n1", "role:frontend"])
            .rule("role:operator", Policy::open())
            .rule("n7", Policy::closed().allow_path("/user/orders"));
        assert_eq!(settings.policy, policy);
        let text = Incoming::Select { text: "/user/other" };
        assert_eq!(settings.policy.access("n7", &[]).decide(text), Err(NotAllowed::Path));
    }

    #[test]
    fn without_the_section_all_is_as_by_default() {
        for text in ["", "[remote]\n"] {
            let settings = read(text).unwrap();
            assert_eq!(settings, RemoteSettings::default());
            assert_eq!(settings.detector, DetectorKeys::default());
        }
        let printed = System::builder("shop").build().unwrap().settings();
        assert!(!printed.contains("remote"), "{printed}");
    }

    /// Notes the settings that it gets.
    struct Taking(Arc<Mutex<Vec<toml::Table>>>);

    impl Engine for Taking {
        fn configure(&mut self, section: &str, toml: &str) -> Result<(), EngineError> {
            assert_eq!(section, "nats");
            self.0.lock().unwrap().push(toml.parse().map_err(EngineError::new)?);
            Ok(())
        }

        fn start(
            self: Box<Self>,
            node: &Identity,
            inbound: Arc<dyn Inbound>,
        ) -> Result<Arc<dyn Fabric>, EngineError> {
            Box::new(InProcess::new()).start(node, inbound)
        }
    }

    #[test]
    fn settings_that_are_printed_are_read_as_they_were() {
        let taken = Arc::<Mutex<Vec<toml::Table>>>::default();
        let node = Node::new("code").engine(Taking(taken.clone())).lanes(NonZeroU8::new(3).unwrap());
        let system = System::builder("shop").node(node).config(ALL).unwrap().build().unwrap();
        assert_eq!(system.remote().map(|remote| remote.node().to_owned()).as_deref(), Some("n1"));
        assert_eq!(*taken.lock().unwrap(), [read(ALL).unwrap().nats], "the engine gets its section, once");
        let printed = system.settings();
        assert_eq!(read(&printed).unwrap(), read(ALL).unwrap(), "{printed}");
        // A login is for the engine alone.
        let file = ALL.replace("tls://10.0.0.1:4222", "tls://me:secret@10.0.0.1:4222");
        let node = Node::new("code").engine(Taking(taken.clone()));
        let system = System::builder("shop").node(node).config(&file).unwrap().build().unwrap();
        let servers = taken.lock().unwrap().pop().expect("its section")["servers"].to_string();
        assert!(servers.contains("tls://me:secret@10.0.0.1:4222"), "{servers}");
        let printed = system.settings();
        assert!(!printed.contains("secret") && printed.contains("tls://…@10.0.0.1:4222"), "{printed}");
        assert!(printed.starts_with("# remote.nats: users and passwords are not shown\n"), "{printed}");
        // What the code says, and no file, is printed too.
        let node =
            Node::new("code").engine(InProcess::new()).cluster("shop").down_after(Duration::from_secs(11));
        let printed = System::builder("shop").node(node).build().unwrap().settings();
        let settings = read(&printed).unwrap();
        assert_eq!((settings.node.as_deref(), settings.cluster.as_deref()), (Some("code"), Some("shop")));
        assert_eq!(settings.detector.down_after, Some(Duration::from_secs(11)));
    }

    #[test]
    fn a_file_changes_the_settings_of_the_code_and_is_at_fault_without_a_node() {
        let error = System::builder("shop").config(ALL).unwrap().build().unwrap_err();
        assert!(error.to_string().contains("`remote`: the system has no node"), "{error}");
        let node = Node::new("n9")
            .roles(["a"])
            .limits(Limits::new().depth(9))
            .detector(DetectorSettings::new().window(7).threshold(3.0))
            .on_quarantine(OnQuarantine::Event);
        let file =
            "[remote]\nroles = [\"b\"]\n[remote.limits]\nbatch = 2048\n[remote.detector]\nthreshold = 4.0";
        let said = apply(config::read(file).unwrap(), SystemSettings::new("shop")).unwrap().remote;
        let changed = config::remote(&node.settings(), &said).unwrap();
        let node = node.with_settings(changed).engine(InProcess::new());
        let settings = node.check("shop").unwrap().settings;
        assert_eq!((settings.name.node.as_str(), &settings.name.roles[..]), ("n9", &["b".to_owned()][..]));
        assert_eq!(
            (settings.limits, settings.on_quarantine),
            (Limits::new().depth(9).batch(2048), OnQuarantine::Event)
        );
        assert_eq!(settings.association.detector, DetectorSettings::new().window(7).threshold(4.0));
    }

    #[test]
    fn a_later_file_changes_an_earlier_one_key_by_key() {
        let first = apply(config::read(ALL).unwrap(), SystemSettings::new("shop")).unwrap();
        let second = "[remote]\nlanes = 3\n[remote.limits]\ndepth = 8\n[remote.policy]\npaths = []";
        let both = apply(config::read(second).unwrap(), first).unwrap();
        let code =
            RemoteSettings { lanes: Some(4), limits: Limits::new().depth(9), ..RemoteSettings::default() };
        let changed = config::remote(&code, &both.remote).unwrap();
        let known = read(ALL).unwrap();
        assert_eq!((changed.lanes, changed.node.clone()), (Some(3), known.node.clone()));
        assert_eq!(changed.limits, known.limits.depth(8));
        let nothing = Incoming::Select { text: "/user/orders" };
        assert_eq!(changed.policy.access("n1", &[]).decide(nothing), Err(NotAllowed::Path));
        assert!(changed.policy.access("n7", &[]).decide(nothing).is_ok());
        // Of a key that no file has, the code says what it is.
        let few = apply(config::read("[remote.limits]\nbatch = 2048").unwrap(), SystemSettings::new("shop"));
        let code = RemoteSettings { limits: Limits::new().depth(9).envelope(1024), ..code };
        let changed = config::remote(&code, &few.unwrap().remote).unwrap();
        assert_eq!((changed.limits, changed.lanes), (code.limits.batch(2048), Some(4)));
    }

    /// A key may be too small for another one that only the code has.
    #[test]
    fn keys_are_compared_with_each_other_when_the_code_has_its_say() {
        let text = "[remote.limits]\nreceive-window = 100000\n[remote.detector]\ndown-after = \"100ms\"";
        let settings = apply(config::read(text).unwrap(), SystemSettings::new("shop")).unwrap();
        let error = config::remote(&RemoteSettings::default(), &settings.remote).unwrap_err();
        assert!(error.to_string().contains("remote.detector.down-after"), "{error}");
        let detector = DetectorKeys { heartbeat: Some(Duration::from_millis(50)), ..DetectorKeys::default() };
        let code = RemoteSettings { detector, ..RemoteSettings::default() };
        let error = config::remote(&code, &settings.remote).unwrap_err();
        assert!(error.to_string().contains("remote.limits.receive-window"), "{error}");
        let code = RemoteSettings { limits: Limits::new().envelope(1024), ..code };
        assert!(config::remote(&code, &settings.remote).is_ok());
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        let too_many_roles = format!("[remote]\nroles = [{}]", "\"a\", ".repeat(129));
        for (text, key, value) in [
            ("[remote]\nnodes = 1", "remote.nodes", "unknown field `nodes`"),
            ("[remote]\nnode = \"n.1\"", "remote.node", "\"n.1\""),
            ("[remote]\nnode = 7", "remote.node", "7"),
            ("[remote]\ncluster = \"\"", "remote.cluster", "\"\""),
            ("[remote]\nroles = [\"a\", \"b c\"]", "remote.roles[1]", "\"b c\""),
            ("[remote]\nlanes = 0", "remote.lanes", "it is 0: must be a whole number from 1 to 16"),
            ("[remote]\nlanes = 17", "remote.lanes", "it is 17"),
            ("[remote]\non-quarantine = \"hide\"", "remote.on-quarantine", "hide"),
            ("[remote]\nnats = 7", "remote.nats", "7"),
            ("[remote.detector]\nheartbeat = \"9ms\"", "remote.detector.heartbeat", "9ms"),
            ("[remote.detector]\nheartbeat = 9", "remote.detector.heartbeat", "9"),
            ("[remote.detector]\nthreshold = 0.0", "remote.detector.threshold", "it is 0"),
            ("[remote.detector]\nthreshold = nan", "remote.detector.threshold", "NaN"),
            ("[remote.detector]\nthreshold = 300.1", "remote.detector.threshold", "300.1"),
            (
                "[remote.detector]\nthreshold = -0.5",
                "remote.detector.threshold",
                "it is -0.5: must be a number",
            ),
            ("[remote.detector]\nheartbeat = \"0s\"", "remote.detector.heartbeat", "at least 10ms"),
            ("[remote.detector]\nheartbeat = \"25h\"", "remote.detector.heartbeat", "at most 86400s"),
            (
                "[remote.detector]\nacceptable-pause = \"0s\"",
                "remote.detector.acceptable-pause",
                "at least 1ms",
            ),
            ("[remote.detector]\nacceptable-pause = \"25h\"", "remote.detector.acceptable-pause", "86400s"),
            (
                "[remote.detector]\ndown-after = \"0s\"",
                "remote.detector.down-after",
                "at least heartbeat, 1s",
            ),
            ("[remote.detector]\ndown-after = \"25h\"", "remote.detector.down-after", "at most 86400s"),
            (&too_many_roles, "remote.roles", "there are 129: must be at most 128"),
            ("[remote.detector]\ndown-after = \"999ms\"", "remote.detector.down-after", "999ms"),
            ("[remote.detector]\nheartbeat = \"11s\"", "remote.detector.heartbeat", "10s"),
            ("[remote.detector]\npause = \"1s\"", "remote.detector.pause", "unknown field"),
            ("[remote.limits]\ndepth = 0", "remote.limits.depth", "the limit depth is 0"),
            ("[remote.limits]\ndepth = 129", "remote.limits.depth", "from 1 to 128"),
            ("[remote.limits]\ndepth = -1", "remote.limits.depth", "-1"),
            ("[remote.limits]\nbatches = 1", "remote.limits.batches", "unknown field"),
            ("[remote.limits]\nreceive-window = 270335", "remote.limits.receive-window", "270335"),
            ("[remote.policy]\ndefault = \"ajar\"", "remote.policy.default", "ajar"),
            ("[remote.policy]\npaths = [\"/a\", \"b\"]", "remote.policy.paths[1]", "\"b\""),
            ("[remote.policy]\ndeploy = { w = [\"n.1\"] }", "remote.policy.deploy.w[0]", "\"n.1\""),
            ("[remote.policy]\ndefault = \"open\"\nstrict-paths = true", "remote.policy", "strict-paths"),
            ("[[remote.policy.rule]]\npeers = \"role:\"", "remote.policy.rule[0].peers", "\"role:\""),
            ("[[remote.policy.rule]]\ndefault = \"open\"", "remote.policy.rule[0]", "peers"),
            (
                "[[remote.policy.rule]]\npeers = \"n1\"\nrule = []",
                "remote.policy.rule[0].rule",
                "unknown field",
            ),
            ("remote = []", "remote", "sequence"),
        ] {
            match read(text) {
                Err(BuildError::ConfigKey { key: found, fault }) => {
                    assert_eq!(found, key, "{text}: {fault}");
                    assert!(fault.contains(value), "{text}: {fault}");
                }
                other => panic!("{text}: {:?}", other.map(drop)),
            }
        }
    }

    /// The values of the code, which no file has checked.
    #[test]
    fn names_of_the_code_are_checked_too() {
        let fault = |settings: RemoteSettings| settings.check().map_err(|(key, _)| key);
        let bad = || Some("a b".to_owned());
        let defaults = RemoteSettings::default;
        assert_eq!(fault(defaults()), Ok(()));
        for (settings, key) in [
            (RemoteSettings { node: bad(), ..defaults() }, "node"),
            (RemoteSettings { cluster: bad(), ..defaults() }, "cluster"),
            (RemoteSettings { roles: bad().map(|role| vec![role]), ..defaults() }, "roles"),
            (RemoteSettings { roles: Some(vec!["a".to_owned(); ROLES_MAX + 1]), ..defaults() }, "roles"),
            (RemoteSettings { lanes: Some(0), ..defaults() }, "lanes"),
            (RemoteSettings { lanes: Some(17), ..defaults() }, "lanes"),
            (RemoteSettings { limits: Limits::new().depth(0), ..defaults() }, "limits.depth"),
            (RemoteSettings { policy: Policy::closed().allow_path("a"), ..defaults() }, "policy"),
        ] {
            assert_eq!(fault(settings), Err(key.to_owned()));
        }
        assert_eq!(fault(RemoteSettings { lanes: Some(16), ..defaults() }), Ok(()));
        let most = || vec!["a".to_owned(); ROLES_MAX];
        assert_eq!(fault(RemoteSettings { roles: Some(most()), ..defaults() }), Ok(()));
        let of_code = |roles| {
            let node = Node::new("n1").engine(InProcess::new()).roles(roles);
            System::builder("shop").node(node).build().map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(of_code(most()), Ok(()));
        let error = of_code([most(), most()].concat()).unwrap_err();
        assert!(error.contains("256 roles: must be at most 128"), "{error}");
    }
}
