//! operation
