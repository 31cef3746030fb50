//! Quotient filters: what is saved, and the rates of false positives.

mod format;
mod rates;
