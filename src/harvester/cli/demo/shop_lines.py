"""What the invented outdoor shops sell: category | brand | model | what it is | price in cents | variants.

A variant may add cents to the price, and comes in every colour. Every name is made up; the trade item numbers are of
the range for examples.
"""

COLOURS = (
    "moss", "slate", "rust", "sand", "ink", "fern", "clay", "stone", "plum", "ochre", "sky", "charcoal",
    "ember", "pine", "dusk", "snow", "bark", "lagoon", "heather", "copper", "olive", "cobalt", "wheat", "graphite",
)  # fmt: skip

LINES = """
Camping > Tents | Larkfell | Tarn | Trekking Tent | 24900 | 1 person, 2 person +6000, 3 person +12000
Camping > Tents | Larkfell | Scree | Mountain Tent | 44900 | 2 person, 3 person +9000
Camping > Tents | Hollow Oak | Meadow | Family Tent | 39900 | 4 person, 6 person +16000
Camping > Tents | Hollow Oak | Lean-To | Tarp | 7990 | 3 x 3 m, 4 x 4 m +3000
Camping > Sleeping Bags | Nightjar | Drift 5 | Down Sleeping Bag | 18900 | regular, long +1500
Camping > Sleeping Bags | Nightjar | Drift -7 | Down Sleeping Bag | 28900 | regular, long +2000
Camping > Sleeping Bags | Hollow Oak | Ember | Synthetic Sleeping Bag | 8990 | regular, long +1000, kids -2000
Camping > Sleeping Mats | Nightjar | Cloud | Inflatable Mat | 12900 | regular, wide +2500
Camping > Sleeping Mats | Larkfell | Slab | Foam Mat | 3490 | 185 cm
Camping > Stoves | Cinderpot | Pilot | Gas Stove | 5490 | one burner, two burners +6500
Camping > Stoves | Cinderpot | Forge | Multi-Fuel Stove | 15900 | with pump
Camping > Cookware | Cinderpot | Nest | Pot Set | 6990 | 1.2 l, 2.0 l +1500, 3.5 l +3200
Camping > Cookware | Cinderpot | Sip | Titanium Mug | 2990 | 450 ml, 650 ml +700
Packs > Trekking Packs | Stonepath | Ridge 50 | Trekking Pack | 21900 | S/M, M/L
Packs > Trekking Packs | Stonepath | Ridge 65 | Trekking Pack | 24900 | S/M, M/L
Packs > Trekking Packs | Larkfell | Fastline 40 | Ultralight Pack | 19900 | S, M, L
Packs > Day Packs | Stonepath | Hop 18 | Day Pack | 6990 | S, M, L
Packs > Day Packs | Stonepath | Hop 26 | Day Pack | 8990 | S, M, L
Packs > Dry Bags | Otterline | Roll | Dry Bag | 1490 | 5 l, 13 l +500, 35 l +1400
Footwear > Hiking Boots | Brackenfoot | Fell Mid | Hiking Boot | 18900 | 40, 41, 42, 43, 44, 45
Footwear > Hiking Boots | Brackenfoot | Fell Mid Women | Hiking Boot | 18900 | 36, 37, 38, 39, 40, 41
Footwear > Trail Shoes | Brackenfoot | Dart | Trail Running Shoe | 13900 | 40, 41, 42, 43, 44
Footwear > Socks | Brackenfoot | Merino Crew | Hiking Sock | 1990 | 36-38, 39-41, 42-44, 45-47
Clothing > Jackets | Galeward | Squall | Rain Jacket | 19900 | S, M, L, XL
Clothing > Jackets | Galeward | Squall Women | Rain Jacket | 19900 | XS, S, M, L
Clothing > Jackets | Galeward | Loft | Down Jacket | 24900 | S, M, L, XL
Clothing > Fleece | Galeward | Lamb | Fleece Pullover | 8990 | S, M, L, XL
Clothing > Trousers | Galeward | Stride | Hiking Trousers | 9990 | 46, 48, 50, 52, 54
Clothing > Base Layers | Hollow Oak | Wool 150 | Base Layer Top | 6990 | S, M, L, XL
Clothing > Hats | Hollow Oak | Peat | Wool Beanie | 2490 | kids, adults
Water > Bottles | Otterline | Brook | Steel Bottle | 2490 | 0.5 l, 0.75 l +400, 1.0 l +800
Water > Filters | Otterline | Clear | Water Filter | 4990 | squeeze, gravity +4000
Lights > Headlamps | Duskline | Beam 300 | Headlamp | 3990 | short strap, long strap
Lights > Headlamps | Duskline | Beam 600 R | Rechargeable Headlamp | 7990 | short strap, long strap
Lights > Lanterns | Duskline | Globe | Camp Lantern | 3490 | warm white
Navigation > Compasses | Duskline | North | Sighting Compass | 4490 | degrees, mils
Trekking > Poles | Stonepath | Tread | Trekking Poles | 8990 | aluminium, carbon +5000
Trekking > Poles | Stonepath | Tread Fold | Folding Poles | 12900 | 110 cm, 120 cm, 130 cm
"""
