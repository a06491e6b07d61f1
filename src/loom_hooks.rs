//! Internals for the models in `loom-tests`; exists only under `--cfg pointsman_loom`.
