//! A model of ExternalDNS: what an instance of a given version and configuration would do to a zone.
//!
//! The planner uses it to know who owns a record, the cutover as its dry run, the twin as the running controller.
