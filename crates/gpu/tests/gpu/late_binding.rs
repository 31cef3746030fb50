//! Which driver an executable takes, and what it says where there is none.
