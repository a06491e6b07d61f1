//! Wrapping makes a message of a group from a message of another type.

/// A type that carries `M` can be made from an `M`, and gives the `M` out again: a refused message comes back in the
/// form in which it was sent.
///
/// `#[derive(Message)]` implements this for the field of each variant for which it implements `From`. Every message
/// carries itself.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::Wraps;
///
/// struct Order(u64);
///
/// #[derive(Message)]
/// enum LedgerMsg {
///     Order(Order),
///     Close,
/// }
///
/// let carried: Result<Order, LedgerMsg> = LedgerMsg::from(Order(7)).give_back();
/// assert!(matches!(carried, Ok(Order(7))));
/// let other: Result<Order, LedgerMsg> = LedgerMsg::Close.give_back();
/// assert!(matches!(other, Err(LedgerMsg::Close)));
/// ```
///
/// An implementation by hand is a single `match`:
///
/// ```
/// # use pointsman::topology::Wraps;
/// # struct Order(u64);
/// # enum LedgerMsg { Order(Order), Close }
/// # impl From<Order> for LedgerMsg { fn from(order: Order) -> Self { Self::Order(order) } }
/// impl Wraps<Order> for LedgerMsg {
///     fn give_back(self) -> Result<Order, Self> {
///         match self {
///             Self::Order(order) => Ok(order),
///             other => Err(other),
///         }
///     }
/// }
/// # let _ = (LedgerMsg::Close, Order(0).0);
/// ```
pub trait Wraps<M>: From<M> + Sized {
    /// Returns the message that this message was made from.
    ///
    /// # Errors
    ///
    /// The message itself, if it was made from something else. A message that `from` has made from an `M` must give
    /// that `M` back.
    fn give_back(self) -> Result<M, Self>;
}

impl<M> Wraps<M> for M {
    fn give_back(self) -> Result<M, Self> {
        Ok(self)
    }
}

/// Returns the message that the carrier was made from a moment ago.
pub(crate) fn taken_back<M, D: Wraps<M>>(carrier: D) -> M {
    match carrier.give_back() {
        Ok(message) => message,
        Err(_) => panic!(
            "{} does not give back the {} that it was made of: mend its `Wraps::give_back`",
            std::any::type_name::<D>(),
            std::any::type_name::<M>()
        ),
    }
}
