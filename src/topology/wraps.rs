//! Messages that carry others.

/// A message that another one can be turned into, and got out of again: so a refused message comes back as what it
/// was when it was sent.
///
/// `#[derive(Message)]` writes it for the field of each variant for which it writes `From`. Every message carries
/// itself.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::Carries;
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
/// Written by hand it is one `match`:
///
/// ```
/// # use pointsman::topology::Carries;
/// # struct Order(u64);
/// # enum LedgerMsg { Order(Order), Close }
/// # impl From<Order> for LedgerMsg { fn from(order: Order) -> Self { Self::Order(order) } }
/// impl Carries<Order> for LedgerMsg {
///     fn give_back(self) -> Result<Order, Self> {
///         match self {
///             Self::Order(order) => Ok(order),
///             other => Err(other),
///         }
///     }
/// }
/// # let _ = (LedgerMsg::Close, Order(0).0);
/// ```
pub trait Carries<M>: From<M> + Sized {
    /// The message that this one was made of.
    ///
    /// # Errors
    ///
    /// Itself, if it was made of something else. What `from` has made of an `M` must give it back.
    fn give_back(self) -> Result<M, Self>;
}

impl<M> Carries<M> for M {
    fn give_back(self) -> Result<M, Self> {
        Ok(self)
    }
}

/// Gets out what was put in a moment ago.
pub(crate) fn taken_back<M, D: Carries<M>>(carrier: D) -> M {
    match carrier.give_back() {
        Ok(message) => message,
        Err(_) => panic!(
            "{} does not give back the {} that it was made of: mend its `Carries::give_back`",
            std::any::type_name::<D>(),
            std::any::type_name::<M>()
        ),
    }
}
