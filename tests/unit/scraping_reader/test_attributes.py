"""What titles of ammunition say, and what they leave open."""

import pytest

from harvester.scraping.reader.attributes import Attributes, attributes_of


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Federal American Eagle 9mm Luger 115 Grain FMJ Brass 50 Rounds",
         {"caliber": "9mm Luger", "grain_weight": 115, "round_count": 50, "case_material": "Brass", "bullet_type": "FMJ"}),
        ("500 Round Case - .223 Rem 55 gr FMJ Boat Tail", {"caliber": ".223 Remington", "grain_weight": 55, "round_count": 500, "bullet_type": "FMJBT"}),
        ("500 rounds (25 boxes of 20) 5.56x45 NATO M855 62gr", {"caliber": "5.56x45mm NATO", "grain_weight": 62}),
        ("7.62x39mm 123gr HP steel case 20rd box", {"caliber": "7.62x39mm", "grain_weight": 123, "bullet_type": "HP", "case_material": "Steel", "round_count": 20}),
        ("Tula .45 ACP 230gr FMJ Steel-Cased, box of 50", {"caliber": ".45 ACP", "grain_weight": 230, "bullet_type": "FMJ", "case_material": "Steel", "round_count": 50}),
        ("CCI Blazer 22 LR 40 Grain LRN 1,000 Rounds", {"caliber": ".22 LR", "grain_weight": 40, "bullet_type": "LRN", "round_count": 1000}),
        ('Winchester 12 Gauge 2-3/4" 00 Buck 5 Rounds', {"caliber": "12 Gauge", "shell_length": '2 3/4"', "load_type": "00 Buck", "round_count": 5}),
        ('Fiocchi 20 ga 2.75" #7.5 shot 25 shells', {"caliber": "20 Gauge", "shell_length": '2.75"', "load_type": "#7.5", "round_count": 25}),
        ('.410 Bore 3" slug 5 rds', {"caliber": ".410 Bore", "shell_length": '3"', "load_type": "Slug", "round_count": 5}),
        ("Hornady 6.5 Creedmoor 140 gr BTHP 20 ct", {"caliber": "6.5 Creedmoor", "grain_weight": 140, "bullet_type": "BTHP", "round_count": 20}),
        ("Speer Gold Dot .357 Sig 125 grain jacketed hollow point", {"caliber": ".357 SIG", "grain_weight": 125, "bullet_type": "JHP"}),
        (".223 Rem / 5.56 NATO ammo can", {}),
        ("9mm and .45 ACP sampler 100 rounds 115 gr 230 gr", {"round_count": 100}),
        ("9x18 Makarov 95 gr FMJ nickel plated brass", {"caliber": "9x18mm Makarov", "grain_weight": 95, "bullet_type": "FMJ", "case_material": "Nickel-Plated Brass"}),
        ("20 rounds per box, 9mm, 10 boxes", {"caliber": "9mm Luger"}),
        ("Acme claw hammer 16 oz, steel handle", {}),
        ("Brass door handle HP", {}),
        ("LED lamp 12 pack", {}),
    ],
)  # fmt: skip
def test_what_a_title_says(title, expected):
    assert attributes_of(title) == Attributes(**expected)
