//! Settings are plain data, with their errors. They know no actor.

pub(crate) mod deployment; // settings of an actor by its path
pub(crate) mod build_error; // the errors of building a system
pub(crate) mod router; // settings of a router
pub(crate) mod resizer; // the resizers, as data
pub(crate) mod section_fault; // faults of the settings of a router
pub(crate) mod setting_error; // the error of a value that is not allowed
pub(crate) mod phases; // the phases of a coordinated shutdown

pub use crate::settings::deployment::Deployment;
pub use crate::settings::router::RouterSettings;
pub use crate::settings::section_fault::SectionFault;
pub use crate::settings::setting_error::SettingError;
