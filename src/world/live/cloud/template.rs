//! EC2 launch templates.

use super::LiveCloud;
use crate::world::cloud::{Found, Resource};
use crate::world::{Class, Error, Result};

impl LiveCloud {
    pub(super) async fn find_template(&self, resource: &Resource) -> Result<Option<Found>> {
        Err(Error::new(Class::Refused, resource.id(), "not yet"))
    }

    pub(super) async fn create_template(&self, resource: &Resource, _: &str) -> Result<()> {
        Err(Error::new(Class::Refused, resource.id(), "not yet"))
    }

    pub(super) async fn delete_template(&self, name: &str) -> Result<()> {
        Err(Error::new(Class::Refused, name, "not yet"))
    }
}
