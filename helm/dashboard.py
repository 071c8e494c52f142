def dashboard():
    return {}
