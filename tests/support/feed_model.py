"""The rules of feeds once more, slowly and in plain Python: what consumers should see after any story.

Times are hours. Nothing here is taken from the code that it judges.
"""

from dataclasses import dataclass, field

EXPIRY, MAX_HOLD = 48.0, 168.0


@dataclass
class Product:
    title: str
    prices: list[tuple[int, float]] = field(default_factory=list)
    last: float | None = None
    seen_until: float | None = None
    accepted: bool = False


@dataclass
class Held:
    run: int
    catalog: dict[str, tuple[str, float]]
    since: float


@dataclass
class Correction:
    """A factor for the price that was shown when it was made, until a different one comes."""

    key: str
    factor: int
    run: int
    price: float
    after: int


@dataclass
class Image:
    """What the newest promoted run replaced; while it is ignored, what ignoring replaced."""

    run: int
    products: dict[str, tuple[str, float | None, bool]]
    promoted_at: float | None
    promoted_count: int


@dataclass
class Model:
    now: float = 0.0
    products: dict[str, Product] = field(default_factory=dict)
    promoted: list[int] = field(default_factory=list)
    promoted_at: float | None = None
    promoted_count: int = 0
    ignored: set[int] = field(default_factory=set)
    image: Image | None = None
    corrections: list[Correction] = field(default_factory=list)
    #: Ignored run -> the prices that it had changed.
    repeats: dict[int, dict[str, float]] = field(default_factory=dict)
    held: Held | None = None
    frozen: float = 0.0
    #: Promoted run -> when that was.
    times: dict[int, float] = field(default_factory=dict)

    @property
    def clock(self) -> float:
        held = self.now - self.held.since if self.held else 0.0
        return self.now - min(self.frozen + held, MAX_HOLD)

    def readable(self, product: Product) -> list[tuple[int, float]]:
        return [price for price in product.prices if price[0] not in self.ignored]

    def is_active(self, product: Product) -> bool:
        seen = self.promoted_at if product.seen_until is None else product.seen_until
        return bool(self.readable(product)) and seen is not None and seen >= self.clock - EXPIRY

    def shown(self) -> dict[str, tuple[str, float]]:
        return {
            key: (product.title, self._corrected(key, product))
            for key, product in self.products.items()
            if self.is_active(product)
        }

    def correct(self, key: str, factor: int) -> None:
        prices = self.readable(self.products[key])
        run, price = prices[-1]
        different = [number for number, amount in prices if amount != price]
        self.corrections.append(Correction(key, factor, run, price, max(different, default=0)))

    def _corrected(self, key: str, product: Product) -> float:
        prices = self.readable(product)
        run, price = prices[-1]
        amount = price
        for made in self.corrections:
            between = any(made.run < number < run and other != made.price for number, other in prices)
            if made.key == key and made.price == price and run > made.after and not between:
                amount *= made.factor
        return round(amount, 2)

    def edge(self) -> float:
        """How near any product is to expiring, or the hold to its deadline."""
        seen = [self.promoted_at if p.seen_until is None else p.seen_until for p in self.products.values()]
        moments = [moment + EXPIRY - self.clock for moment in seen if moment is not None]
        return min(map(abs, moments), default=99.0)

    def run(self, number: int, catalog: dict[str, tuple[str, float]]) -> str:
        if self._is_held(catalog):
            self.held = Held(number, catalog, self.held.since if self.held else self.now)
            return "HELD"
        self._promote(number, catalog, accept=False)
        return "PROMOTED"

    def approve(self) -> None:
        for changed in self.repeats.values():
            for key, (_, price) in self.held.catalog.items():
                if changed.get(key) == price and (key not in self.products or self.products[key].last != price):
                    del changed[key]
        self._promote(self.held.run, self.held.catalog, accept=True)

    def reject(self) -> None:
        self.frozen += self.now - self.held.since
        self.held = None

    def ignore(self, number: int) -> None:
        self.repeats[number] = {
            key: dict(product.prices)[number]
            for key, product in self.products.items()
            if number in dict(product.prices) and self._before(product, number) != dict(product.prices)[number]
        }
        self.ignored.add(number)
        self._swap(number)
        for product in self._priced_by(number):
            product.last = None
            if self.image.run == number and not product.prices[:-1]:
                # It was new: if its price counts again later, the run is the last that saw it.
                product.seen_until, product.accepted = self.times[number], False

    def may_undo(self, number: int) -> bool:
        newer = [run for run in self.promoted if run > number and run not in self.ignored]
        return not newer or all(self.readable(p) and self.readable(p)[-1][0] > number for p in self._priced_by(number))

    def undo(self, number: int) -> None:
        self.ignored.discard(number)
        del self.repeats[number]
        self._swap(number)
        for product in self._priced_by(number):
            product.last = self.readable(product)[-1][1]

    def _before(self, product: Product, number: int) -> float | None:
        """The price that counted before a run."""
        older = [price for run, price in self.readable(product) if run < number]
        return older[-1] if older else None

    def _swap(self, number: int) -> None:
        """Exchange what the newest promoted run replaced with what there is now."""
        image = self.image
        if image is None or image.run != number:
            return
        now = {key: (p.title, p.seen_until, p.accepted) for key, p in self.products.items()}
        for key, (title, seen_until, accepted) in image.products.items():
            product = self.products[key]
            product.title, product.seen_until, product.accepted = title, seen_until, accepted
        current = self.promoted_at, self.promoted_count
        self.promoted_at, self.promoted_count = image.promoted_at, image.promoted_count
        self.image = Image(number, now, *current)

    def _priced_by(self, number: int) -> list[Product]:
        return [p for p in self.products.values() if any(run == number for run, _ in p.prices)]

    def _is_held(self, catalog: dict[str, tuple[str, float]]) -> bool:
        active = [key for key, product in self.products.items() if self.is_active(product) and not product.accepted]
        missing = sum(key not in catalog for key in active)
        if active:
            spike = missing >= 10 and missing > 0.3 * len(active)
        else:
            gone = self.promoted_count - len(catalog)
            spike = gone >= 10 and gone > 0.3 * self.promoted_count
        repeats = any(self._repeats(changed, catalog) for changed in self.repeats.values())
        known = [key for key in catalog if key in self.products and self.readable(self.products[key])]
        last = {key: self.readable(self.products[key])[-1][1] for key in known}
        shocked = sum(abs(catalog[key][1] - last[key]) > 0.5 * last[key] for key in known)
        return spike or repeats or (shocked >= 20 and shocked > 0.2 * len(known))

    def _repeats(self, changed: dict[str, float], catalog: dict[str, tuple[str, float]]) -> bool:
        repeated = [key for key, price in changed.items() if key in catalog and catalog[key][1] == price]
        returning = [
            key for key in repeated if [p for _, p in self.readable(self.products[key])][-1:] != [changed[key]]
        ]
        return 2 * len(repeated) > len(changed) and bool(returning)

    def _promote(self, number: int, catalog: dict[str, tuple[str, float]], *, accept: bool) -> None:
        lost = self.now - self.clock
        shifted = {
            key: (p.title, None if p.seen_until is None else p.seen_until + lost, p.accepted)
            for key, p in self.products.items()
        }
        at = None if self.promoted_at is None else self.promoted_at + lost
        self.image = Image(number, shifted, at, self.promoted_count)
        self.times[number] = self.now
        for key, product in self.products.items():
            if not self.readable(product):
                continue
            was_counted = self.is_active(product) and not product.accepted
            if product.seen_until is not None:
                product.seen_until += lost
            if key not in catalog:
                product.accepted |= accept and (was_counted or product.seen_until is None)
                product.seen_until = self.promoted_at + lost if product.seen_until is None else product.seen_until
        for key, (title, price) in catalog.items():
            product = self.products.setdefault(key, Product(title))
            product.title, product.seen_until, product.accepted = title, None, False
            if product.last != price:
                product.prices.append((number, price))
                product.last = price
        self.promoted.append(number)
        self.promoted_at, self.promoted_count = self.now, len(catalog)
        self.held, self.frozen = None, 0.0
