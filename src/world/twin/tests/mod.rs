//! Tests of the twin by itself: if it is more lenient than the real servers, rehearsals prove nothing.

mod api;
mod apply;
mod cloud;
mod company;
mod dns;
mod external_dns;
mod faults;
mod observe;
mod promises;
