//! Tests of every structure: the grammar of the API, keys of every type, stencils; and the pages of the repository.

mod builders;
mod comments;
mod compiled_lines;
mod grammar;
mod grammar_names;
mod integers;
mod limits;
mod markdown;
mod messages;
mod one_source;
mod serde;
mod stencils;
