//! An actor that wraps another one has the hooks of the actor inside.

/// Writes the methods of [`Actor`](crate::Actor) other than `receive` for an actor that keeps another of type `$actor` in
/// the field `$field`: each calls that of the actor inside. With `within`, `$guard` is held during each hook that runs with
/// a context; `$this` names the wrapping actor there.
macro_rules! forward_hooks {
    ($field:ident: $actor:ty $(, within |$this:ident| $guard:expr)?) => {
        fn started(
            &mut self,
            ctx: &mut $crate::actor::context::Context<Self::Message>,
        ) -> $crate::actor::actor::HandlerResult {
            $(let $this = &*self; let _within = $guard;)?
            self.$field.started(ctx)
        }

        fn stopped(&mut self, ctx: &mut $crate::actor::context::Context<Self::Message>) {
            $(let $this = &*self; let _within = $guard;)?
            self.$field.stopped(ctx);
        }

        fn restarting(
            &mut self,
            failure: &$crate::failure::Failure,
            ctx: &mut $crate::actor::context::Context<Self::Message>,
        ) -> $crate::actor::actor::HandlerResult {
            $(let $this = &*self; let _within = $guard;)?
            self.$field.restarting(failure, ctx)
        }

        fn restarted(
            &mut self,
            failure: &$crate::failure::Failure,
            ctx: &mut $crate::actor::context::Context<Self::Message>,
        ) -> $crate::actor::actor::HandlerResult {
            $(let $this = &*self; let _within = $guard;)?
            self.$field.restarted(failure, ctx)
        }

        fn terminated(
            &mut self,
            terminated: $crate::core::control::Terminated,
            ctx: &mut $crate::actor::context::Context<Self::Message>,
        ) -> $crate::actor::actor::HandlerResult {
            $(let $this = &*self; let _within = $guard;)?
            self.$field.terminated(terminated, ctx)
        }

        fn influences_receive_timeout(&self, message: &Self::Message) -> bool {
            self.$field.influences_receive_timeout(message)
        }

        fn mailbox() -> Option<$crate::mailbox::kind::Mailbox> {
            <$actor>::mailbox()
        }

        fn mailbox_requirement() -> Option<$crate::mailbox::kind::MailboxRequirement> {
            <$actor>::mailbox_requirement()
        }

        fn supervision(&self) -> $crate::core::strategy::Strategy {
            self.$field.supervision()
        }
    };
}

pub(crate) use forward_hooks;
