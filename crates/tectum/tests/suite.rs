//! The integration tests, in one program: linked once, with one set of threads.

mod devices;
mod files;
mod power_loss;
mod receipt_schema;
mod route;
