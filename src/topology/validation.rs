//! A validation asks the actors of the groups whether they could follow a new configuration.
//!
//! All actors of all groups are asked before the first answer is waited for, and all have the same time. An actor that
//! has ended has no say; an actor that does not answer refuses.

use crate::ask::ask::Ask;
use crate::ask::error::{AskError, NoReplyCause};
use crate::ask::reply::Call;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::group::config::GroupConfig;
use crate::group::status::StatusReport;
use crate::group::validate_config::ValidateConfig;
use crate::topology::config::Change;
use crate::topology::error::{ConfigRefusal, TopologyError};
use crate::topology::member::GroupMember;
use crate::topology::stop::asked;
use std::fmt;
use std::time::Duration;

/// How long the actors have to answer, unless the topology says otherwise.
pub(crate) const VALIDATION_LIMIT: Duration = Duration::from_secs(5);

/// A question to an actor, on its way.
struct Question<'a> {
    group: &'a str,
    actor: ActorRef<Call<ValidateConfig>>,
    answer: Ask<Result<(), String>>,
}

/// Asks the actors of the groups that are to change, and waits for their answers.
///
/// # Errors
///
/// [`TopologyError::Refused`] with all refusals, and [`TopologyError::MustNotWait`].
pub(crate) fn ask_actors(changes: &[Change], limit: Duration) -> Result<(), TopologyError> {
    let mut questions = Vec::new();
    for Change { name, member, config } in changes {
        for actor in asked(|| member.validators()).unwrap_or_default() {
            let answer = actor.ask(ValidateConfig::new(config.clone())).within(limit);
            questions.push(Question { group: name, actor, answer });
        }
    }
    let mut refusals = Vec::new();
    for Question { group, actor, answer } in questions {
        let reason = match answer.wait() {
            Ok(Ok(())) => continue,
            Ok(Err(reason)) => reason,
            Err(AskError::WouldBlockWorker) => return Err(TopologyError::MustNotWait),
            Err(AskError::Undeliverable { .. } | AskError::NoReply { cause: NoReplyCause::Unread, .. }) => {
                if actor.is_closed() {
                    continue;
                }
                "it has not read the question: its mailbox has no room".to_owned()
            }
            Err(error) => error.to_string(),
        };
        refusals.push(ConfigRefusal { group: group.to_owned(), actor: actor.path(), reason });
    }
    if refusals.is_empty() { Ok(()) } else { Err(TopologyError::Refused { refusals }) }
}

/// Tells an actor that the configuration of its group has changed. This is elfo's `UpdateConfig`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UpdateConfig {
    /// The new section of the group.
    pub config: GroupConfig,
}

/// An actor that is mounted alone and follows the configuration itself: it validates each change by a
/// [`ValidateConfig`] request, and gets each section that is in effect, the first one too, as an [`UpdateConfig`]
/// message.
///
/// ```
/// use pointsman::group::ValidateConfig;
/// use pointsman::prelude::*;
/// use pointsman::topology::{ConfiguredActor, UpdateConfig};
///
/// #[derive(Message)]
/// enum AuditMsg {
///     Validate(Call<ValidateConfig>),
///     Update(UpdateConfig),
/// }
///
/// struct Audit;
/// impl Actor for Audit {
///     type Message = AuditMsg;
///     fn receive(&mut self, message: AuditMsg, _: &mut Context<AuditMsg>) -> HandlerResult {
///         match message {
///             AuditMsg::Validate(call) => call.answer(|_| Ok(())),
///             AuditMsg::Update(update) => println!("{:?}", update.config),
///         }
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let topology = system.topology();
/// let audit = system.actor("audit").spawn(|| Audit)?;
/// topology.local("audit")?.mount(&ConfiguredActor::new(&audit));
/// topology.start()?;
/// # Ok(())
/// # }
/// ```
pub struct ConfiguredActor<D> {
    actor: ActorRef<D>,
}

impl<D> ConfiguredActor<D>
where
    D: From<Call<ValidateConfig>> + From<UpdateConfig> + Send + 'static,
{
    /// Lets this actor follow the configuration of the group behind which it is mounted.
    pub fn new(actor: &ActorRef<D>) -> Self {
        Self { actor: actor.clone() }
    }
}

impl<D> Clone for ConfiguredActor<D> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone() }
    }
}

impl<D> fmt::Debug for ConfiguredActor<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredActor").finish_non_exhaustive()
    }
}

impl<D> From<ConfiguredActor<D>> for ActorRef<D> {
    fn from(configured: ConfiguredActor<D>) -> Self {
        configured.actor
    }
}

impl<D> GroupMember for ConfiguredActor<D>
where
    D: From<Call<ValidateConfig>> + From<UpdateConfig> + Send + 'static,
{
    fn validators(&self) -> Vec<ActorRef<Call<ValidateConfig>>> {
        vec![self.actor.narrow()]
    }

    fn update(&self, config: &GroupConfig) {
        self.actor.tell(D::from(UpdateConfig { config: config.clone() }));
    }

    fn terminate(&self, reason: &str) {
        self.actor.terminate(reason);
    }

    fn watched(&self) -> Option<AnyActorRef> {
        self.actor.watched()
    }

    fn actors(&self) -> Vec<AnyActorRef> {
        self.actor.actors()
    }

    fn subscribe_statuses(&self, name: &str, subscriber: &ActorRef<StatusReport<String>>) {
        self.actor.subscribe_statuses(name, subscriber);
    }
}
