"""The portal's lists. Django finds this module by its name."""

from harvester.catalog.models import PriceCorrection, Retailer, Source
from harvester.engine.models import Job, JobEvent, PeriodicJob
from harvester.feeds.models import Feed
from harvester.ops.models import Alert, ApiKey, AuditEvent, User
from harvester.portal.alerts import AlertAdmin
from harvester.portal.audit_log import AuditEventAdmin
from harvester.portal.catalog.corrections import CorrectionAdmin
from harvester.portal.catalog.offers import OfferPages
from harvester.portal.catalog.review import ReviewPages
from harvester.portal.catalog.sources import RetailerAdmin, SourceAdmin
from harvester.portal.feeds.lists import FeedAdmin
from harvester.portal.jobs import JobAdmin, JobEventAdmin, PeriodicJobAdmin
from harvester.portal.runs.lists import RunAdmin
from harvester.portal.scraping.adapters import AdapterPages
from harvester.portal.scraping.imports import ImportPages
from harvester.portal.scraping.quarantine import QuarantineAdmin
from harvester.portal.scraping.shops import ShopPages
from harvester.portal.scraping.targets import TargetAdmin, TryPages, UrlHealthPages
from harvester.portal.site import site
from harvester.portal.users import ApiKeyAdmin, UserAdmin
from harvester.runs.models import Run
from harvester.scraping.models import QuarantineEntry, ScrapeTarget

site.register(Run, RunAdmin)
site.register(Feed, FeedAdmin)
site.register(Job, JobAdmin)
site.register(JobEvent, JobEventAdmin)
site.register(PeriodicJob, PeriodicJobAdmin)
site.register(Alert, AlertAdmin)
site.register(AuditEvent, AuditEventAdmin)
site.register(User, UserAdmin)
site.register(ApiKey, ApiKeyAdmin)
site.register(Retailer, RetailerAdmin)
site.register(Source, SourceAdmin)
site.register(PriceCorrection, CorrectionAdmin)
site.register(ScrapeTarget, TargetAdmin)
site.register(QuarantineEntry, QuarantineAdmin)
site.add(ShopPages)
site.add(AdapterPages)
site.add(UrlHealthPages)
site.add(ImportPages)
site.add(TryPages)
site.add(OfferPages)
site.add(ReviewPages)
