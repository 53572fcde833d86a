"""The same pages read by a Scrapy spider, with the extraction function of Harvester, each item committed by itself.

One process with Scrapy's usual settings: robots.txt obeyed, connections kept, one request at a time of each domain and
no pause, because the pace does not bind. It keeps no page, judges no batch and has no jobs that survive it.
"""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import psycopg

from tests.support.page_server import resolve_locally

# Twisted takes the resolver when it is imported.
resolve_locally()

import scrapy  # noqa: E402
from scrapy.crawler import CrawlerProcess  # noqa: E402

from harvester.scraping.extraction import read  # noqa: E402
from harvester.scraping.offers import offer_to_json  # noqa: E402
from harvester.scraping.site import ReadContext  # noqa: E402

_INSERT = "INSERT INTO scrapy_items (target_id, outcome, amount, found) VALUES (%s, %s, %s, %s)"


class ShopSpider(scrapy.Spider):
    name = "shops"

    def __init__(self, address: dict[str, Any], **more: Any) -> None:
        super().__init__(**more)
        self.database = psycopg.connect(**address, autocommit=True)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        pages = self.database.execute("SELECT id, url FROM scrape_targets ORDER BY md5(url)").fetchall()
        self.database.execute("INSERT INTO scrapy_run DEFAULT VALUES")
        for target_id, url in pages:
            yield scrapy.Request(url, cb_kwargs={"target_id": str(target_id)})

    def parse(self, response: scrapy.http.Response, target_id: str) -> Any:
        host = response.url.split("/")[2].partition(":")[0]
        context = ReadContext(
            url=response.url, source_id="", run_no=None, target_id=target_id, retailer_name=host,
            retailer_domain=host, default_currency=None,
        )  # fmt: skip
        kind = (response.headers.get("Content-Type") or b"").decode()
        reading = read(response.body, kind, "structured", None, context)
        yield {"target_id": target_id, "outcome": reading.outcome, "offer": reading.offer}


class CommitEach:
    """An item is safe before the next one is written."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> "CommitEach":
        made = cls()
        made.crawler = crawler
        return made

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        offer = item["offer"]
        found = offer_to_json(offer) if offer else None
        values = [item["target_id"], item["outcome"], offer and str(offer.price), json.dumps(found)]
        self.crawler.spider.database.execute(_INSERT, values)
        return item


def main() -> None:
    options = json.loads(sys.argv[1])
    process = CrawlerProcess(
        {
            "LOG_LEVEL": "WARNING",
            "USER_AGENT": "HarvesterBench/1.0 (+https://bot.harvester.example/; bot@harvester.example)",
            "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": options["concurrency"],
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            "DOWNLOAD_DELAY": 0,
            "COOKIES_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            # The other one does not ask the resolver that knows the shops.
            "TWISTED_DNS_RESOLVER": "scrapy.resolver.CachingHostnameResolver",
            "ITEM_PIPELINES": {CommitEach: 100},
        }
    )
    process.crawl(ShopSpider, address=options["address"])
    process.start()


if __name__ == "__main__":
    main()
