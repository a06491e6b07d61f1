//! A validation request asks an actor whether it could follow a new configuration of its group.

use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::group::builder::GroupPlan;
use crate::group::config::GroupConfig;
use crate::group::group::Group;
use crate::group::key::GroupKey;

/// Asks an actor whether it could follow this section of a new configuration, before any group gets its section. The
/// answer is `Ok(())`, or the reason of the refusal, for people: then no group changes. The actor changes nothing.
///
/// The actors of a group are asked if the plan of the group says so
/// ([`validated_by_actors`](crate::group::GroupPlan::validated_by_actors)), and an actor that is mounted alone if it is
/// mounted as a [`ConfiguredActor`](crate::topology::ConfiguredActor). This is elfo's `ValidateConfig`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ValidateConfig {
    /// The section that the group would get.
    pub config: GroupConfig,
}

impl ValidateConfig {
    pub(crate) fn new(config: GroupConfig) -> Self {
        Self { config }
    }
}

impl Request for ValidateConfig {
    type Reply = Result<(), String>;
}

/// Makes the reference by which an actor is asked.
pub(crate) type AsksToValidate<M> = fn(&ActorRef<M>) -> ActorRef<Call<ValidateConfig>>;

impl<M: Send + 'static, K: GroupKey> GroupPlan<M, K> {
    /// Lets the actors of the group validate each change of the group's configuration, by a [`ValidateConfig`] request
    /// in which each present actor may refuse the change with a reason. No actor is created for it. The first
    /// configuration, and a forced one, are validated by `decode` of [`config`](Self::config) alone.
    ///
    /// ```
    /// use pointsman::group::ValidateConfig;
    /// use pointsman::prelude::*;
    ///
    /// #[derive(Message)]
    /// enum LedgerMsg {
    ///     Validate(Call<ValidateConfig>),
    ///     Book(u64),
    /// }
    ///
    /// struct Ledger {
    ///     is_open: bool,
    /// }
    /// impl Actor for Ledger {
    ///     type Message = LedgerMsg;
    ///     fn receive(&mut self, message: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
    ///         match message {
    ///             LedgerMsg::Validate(call) if self.is_open => call.answer(|_| Err("the day is not closed".to_owned())),
    ///             LedgerMsg::Validate(call) => call.answer(|_| Ok(())),
    ///             LedgerMsg::Book(_) => self.is_open = true,
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let ledgers = system
    ///     .group("ledgers")
    ///     .by_key(
    ///         |message: &LedgerMsg| if let LedgerMsg::Book(account) = message { *account } else { 0 },
    ///         |_, _| Ledger { is_open: false },
    ///     )
    ///     .validated_by_actors()
    ///     .spawn()?;
    /// # drop(ledgers);
    /// # Ok(())
    /// # }
    /// ```
    pub fn validated_by_actors(mut self) -> Self
    where
        M: From<Call<ValidateConfig>>,
    {
        self.asks_to_validate = Some(ActorRef::narrow::<Call<ValidateConfig>>);
        self
    }
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Returns the present actors, as they are asked to validate a configuration; none if the plan does not say so.
    pub(crate) fn validators(&self) -> Vec<ActorRef<Call<ValidateConfig>>> {
        let Some(asks_to_validate) = self.group_state.asks_to_validate else { return Vec::new() };
        let typed = |actor: &AnyActorRef| actor.typed::<M>().ok();
        self.group_state.actors().iter().filter_map(typed).map(|actor| asks_to_validate(&actor)).collect()
    }
}
