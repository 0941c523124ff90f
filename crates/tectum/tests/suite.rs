//! The integration tests, in one program: linked once, with one set of threads.

mod conformance;
mod defects;
mod devices;
mod fnv_collision;
mod receipt_schema;
mod route;
